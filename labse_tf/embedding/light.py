"""Embeds text with an ONNX encoder of a model dir, without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labse_tf.embedding.model_dir import ModelDir
from labse_tf.embedding.runtimes import open_runtime
from labse_tf.embedding.windows import SortingEncoder
from vocab import wordpiece_file
from vocab.wordpiece import WordPiece

_START, _END = "[CLS]", "[SEP]"


class LightEmbedder(SortingEncoder):
    """A loaded ONNX file; its tokeniser is `vocab.wordpiece`, which splits as the preprocessor."""

    def __init__(self, model_dir: ModelDir) -> None:
        """Reads the vocabulary and the encoder.

        Args:
          model_dir: one that `has_wordpieces`, with an ONNX encoder.

        Raises:
          InputError: if the encoder cannot be read.
          VocabularyFileError: if the vocabulary cannot be.
        """
        tokens = wordpiece_file.read(model_dir.vocabulary)
        self.sequence_length = model_dir.facts["sequence_length"]
        self._ids = {token: number for number, token in enumerate(tokens)}
        max_bytes = model_dir.facts["max_bytes_per_word"]
        self._pieces = WordPiece(tokens, max_bytes_per_word=max_bytes)
        self._runtime = open_runtime(model_dir.encoder)
        self.dim = self._embed(self._tokenize([""]), np.zeros(1, np.int64), 2).shape[1]
        if model_dir.num_layers == 0:
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
