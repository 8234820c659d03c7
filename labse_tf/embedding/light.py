"""Embeds text with an ONNX encoder of a model dir, without TensorFlow."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labse_tf.embedding.model_dir import describe, find_vocabulary, num_layers
from labse_tf.embedding.runtimes import open_runtime
from labse_tf.embedding.windows import SortingEncoder
from vocab import wordpiece_file
from vocab.wordpiece import WordPiece

_START, _END = "[CLS]", "[SEP]"
_WORDPIECE = "wordpiece"


class LightEmbedder(SortingEncoder):
    """A loaded ONNX file; its tokeniser is `vocab.wordpiece`, which splits as the preprocessor."""

    def __init__(self, model_dir: Path, encoder: Path) -> None:
        """Reads the vocabulary and the encoder.

        Args:
          model_dir: one that `has_wordpieces`.
          encoder: the `.onnx` file in it.

        Raises:
          InputError: if the encoder cannot be read.
          VocabularyFileError: if the vocabulary cannot be.
        """
        found = describe(model_dir)
        tokens = wordpiece_file.read(find_vocabulary(model_dir))
        self.sequence_length = found["sequence_length"]
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._pieces = WordPiece(tokens, max_bytes_per_word=found["max_bytes_per_word"])
        self._runtime = open_runtime(encoder)
        self.dim = self._embed(self._tokenize([""]), np.zeros(1, np.int64), 2).shape[1]
        if num_layers(model_dir) == 0:
            self._has_no_layers()

    def count_weights(self) -> None:
        """Returns None: the format does not tell."""
        return None

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return [[self._ids[token] for token in self._pieces.tokenize(text)] for text in texts]

    def _lengths(self, tokens: list[list[int]]) -> np.ndarray:
        return np.array([len(row) for row in tokens], np.int64)

    def _embed(self, tokens: list[list[int]], rows: np.ndarray, length: int) -> np.ndarray:
        word_ids = np.zeros((len(rows), length), np.int64)
        mask = np.zeros_like(word_ids)
        for place, row in enumerate(rows):
            ids = [self._ids[_START], *tokens[row][: length - 2], self._ids[_END]]
            word_ids[place, : len(ids)] = ids
            mask[place, : len(ids)] = 1
        packed = {"input_word_ids": word_ids, "input_mask": mask, "input_type_ids": 0 * mask}
        return self._runtime.run(packed)


def has_wordpieces(model_dir: Path) -> bool:
    """Returns whether `LightEmbedder` can tokenise for the encoders of this model dir."""
    found = describe(model_dir)
    known = {"sequence_length", "max_bytes_per_word"} <= found.keys()
    # Older model dirs tell no kind: they have WordPieces.
    kind = found.get("tokenizer", _WORDPIECE)
    return known and kind == _WORDPIECE and find_vocabulary(model_dir).is_file()


def has_tensorflow() -> bool:
    """Returns whether the library is installed, without importing it."""
    return importlib.util.find_spec("tensorflow") is not None
