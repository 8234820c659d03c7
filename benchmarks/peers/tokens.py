"""Our tokens of texts, and those of a peer that reads the same vocabulary.

    python -m benchmarks.peers.tokens PAIRS VOCAB --out SAMPLE

writes our tokens of a sample of PAIRS (a folder of `<lang>.tsv`), some from each file. Peers that
are trained compare theirs with these first.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from benchmarks import make_parser
from benchmarks.peers.same_work import check_vocabulary
from labse_tf.config import TokenizerConfig
from labse_tf.files.textio import read_pairs
from labse_tf.model.huggingface_bert import MAX_BYTES_PER_WORD
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from vocab import wordpiece_file

PEER = "benchmarks.peers.huggingface"
UNKNOWN = wordpiece_file.RESERVED_TOKENS.index("[UNK]")
_LINES_PER_BATCH = 1000
_PAIRS_PER_FILE = 20

Row = tuple[str, list[int], list[int]]


def tokens_of_both(python: str, source: Path, texts: Path) -> list[Row]:
    """Returns each line with our ids and theirs, after checking that the vocabularies are equal.

    Args:
      python: the peer's Python.
      source: a vocabulary, or a Hugging Face folder with vocab.txt.
      texts: a file with one text per line.
    """
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "tokens.npz")
        command = [python, "-m", PEER, "tokens", str(source), str(texts), str(out)]
        subprocess.run(command, check=True)
        with np.load(out) as saved:
            theirs = np.split(saved["ids"], np.cumsum(saved["lengths"])[:-1])
            their_vocabulary = json.loads(str(saved["vocabulary"]))
    vocab = source / "vocab.txt" if source.is_dir() else source
    check_vocabulary(wordpiece_file.read(vocab), their_vocabulary)
    lines = texts.read_text("utf-8").split("\n")[:-1]
    ours = _tokens(vocab, MAX_BYTES_PER_WORD, lines)
    return list(zip(lines, ours, (ids.tolist() for ids in theirs), strict=True))


def write_sample(pairs: Path, vocab: Path, out: Path) -> None:
    """Writes texts of all files of pairs with their ids, including [CLS] and [SEP]."""
    texts = []
    for path in sorted(pairs.rglob("*.tsv*")):
        rows = [row for _, *row in read_pairs(path)]
        texts += [text for row in rows[:: max(1, len(rows) // _PAIRS_PER_FILE)] for text in row]
    if not texts:
        raise SystemExit(f"no pairs in {pairs}")
    first, last = map(wordpiece_file.RESERVED_TOKENS.index, ("[CLS]", "[SEP]"))
    ids = _tokens(vocab, TokenizerConfig().max_bytes_per_word, texts)
    sample = {"texts": texts, "ids": [[first, *row, last] for row in ids], "unknown": UNKNOWN}
    out.write_text(json.dumps(sample), "utf-8")


def _tokens(vocab: Path, max_bytes_per_word: int, texts: list[str]) -> list[list[int]]:
    tokenizer = WordPieceTokenizer(vocab, max_bytes_per_word=max_bytes_per_word)
    return [
        ids
        for start in range(0, len(texts), _LINES_PER_BATCH)
        for ids in tokenizer(tf.constant(texts[start : start + _LINES_PER_BATCH])).to_list()
    ]


def main() -> None:
    parser = make_parser(__doc__, "pairs", "vocab")
    parser.add_argument("--out", type=Path, required=True, metavar="SAMPLE")
    args = parser.parse_args()
    write_sample(args.pairs, args.vocab, args.out)


if __name__ == "__main__":
    main()
