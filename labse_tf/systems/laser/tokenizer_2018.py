"""The preprocessor of LASER's encoder of 2018, in Python, with the methods of a SavedModel's.

Its words need rules and programs that no TensorFlow graph can hold. So a model dir has the files
of the byte-pair encodings in place of the folder `preprocessor`, and `labse_tf` runs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from labse_tf.systems.laser.fast_bpe import FastBpe
from labse_tf.systems.laser.tokenizer import UNKNOWN, pack_segments
from labse_tf.systems.laser.words import LaserWords

# In a model dir.
CODES_FILE, VOCAB_FILE = Path("tokenizer", "bpe.codes"), Path("tokenizer", "bpe.vocab")
TOKENS_FILE = Path("encoder", "assets", "vocab.txt")


class Laser2018Preprocessor:
    """Strings to the encoder's inputs."""

    def __init__(
        self, bpe: FastBpe, tokens: Sequence[str], *, length: int, language: str | None = None
    ) -> None:
        """Makes the preprocessor.

        Args:
          bpe: splits words.
          tokens: of the encoder; a token's index is its id.
          length: of the packed inputs, tokens.
          language: as for `LaserWords`.

        Raises:
          InputError: as `LaserWords`.
        """
        self._bpe, self._length = bpe, length
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._words = LaserWords(language)

    def ids(self, text: str) -> list[int]:
        """Returns the ids of one text, without the end token.

        Raises:
          InputError: if a package is missing that its language needs.
        """
        pieces = (piece for word in self._words(text) for piece in self._bpe.split(word))
        return [self._ids.get(piece, UNKNOWN) for piece in pieces]

    def tokenize(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`[batch]` strings -> int32 ragged `[batch, (1), (tokens)]`: a text counts as one word."""
        rows = [self.ids(text.decode("utf-8", "replace")) for text in strings.numpy()]
        flat = np.fromiter((number for row in rows for number in row), np.int32)
        tokens = tf.RaggedTensor.from_row_lengths(flat, [len(row) for row in rows])
        return tf.RaggedTensor.from_row_splits(tokens, tf.range(tokens.nrows() + 1), validate=False)

    def bert_pack_inputs(
        self, segments: list[tf.RaggedTensor], seq_length: int | tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Packs one or two segments, int32 ragged `[batch, (tokens)]`: see `pack_segments`."""
        return pack_segments(segments, seq_length)

    def __call__(self, strings: tf.Tensor) -> dict[str, tf.Tensor]:
        """`[batch]` strings -> dict of int32 `[batch, length]`, as a SavedModel's."""
        return self.bert_pack_inputs([self.tokenize(strings).merge_dims(1, 2)], self._length)


def open_preprocessor(
    model_dir: Path, *, length: int, language: str | None
) -> Laser2018Preprocessor:
    """Opens that of a model dir.

    Raises:
      InputError: if a file is missing or damaged, or as `LaserWords`.
    """
    bpe = FastBpe(model_dir / CODES_FILE, model_dir / VOCAB_FILE)
    tokens = (model_dir / TOKENS_FILE).read_text("utf-8").split("\n")[:-1]
    return Laser2018Preprocessor(bpe, tokens, length=length, language=language)
