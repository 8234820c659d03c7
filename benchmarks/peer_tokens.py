"""Our tokens of texts beside those of Hugging Face's BertTokenizerFast."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

from labse_tf.model.huggingface_bert import MAX_BYTES_PER_WORD
from labse_tf.tokenization import Tokenizer

PEER = Path(__file__).parent / "peers" / "huggingface.py"
_LINES_A_BATCH = 1000


def tokens_of_both(
    python: str, folder: Path, texts: Path
) -> Iterator[tuple[str, list[int], list[int]]]:
    """Yields each line with our ids and theirs.

    Args:
      python: the peer's.
      folder: has the vocabulary, vocab.txt.
      texts: a text a line.
    """
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "tokens.npz")
        subprocess.run([python, str(PEER), "tokens", str(folder), str(texts), str(out)], check=True)
        with np.load(out) as saved:
            theirs = np.split(saved["ids"], np.cumsum(saved["lengths"])[:-1])
    lines = texts.read_text("utf-8").split("\n")[:-1]
    tokenizer = Tokenizer(folder / "vocab.txt", max_bytes_per_word=MAX_BYTES_PER_WORD)
    for start in range(0, len(lines), _LINES_A_BATCH):
        batch = lines[start : start + _LINES_A_BATCH]
        ours = tokenizer(tf.constant(batch)).to_list()
        their_batch = [ids.tolist() for ids in theirs[start : start + _LINES_A_BATCH]]
        yield from zip(batch, ours, their_batch, strict=True)
