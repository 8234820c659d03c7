"""Embeds text with a model dir, as the paper defines it: the normalised `default` output."""

from __future__ import annotations

import abc
import math
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  The preprocessor's ops live in it.

from labse_tf.model.exported import check_saved_models
from labse_tf.progress import Progress

_SENTENCES_A_WINDOW = 8192
_TOKENS_A_BATCH = 8192
_LENGTH_STEP = 8


class SortingEncoder(abc.ABC):
    """Sorts texts by length inside a window, so that little is padding.

    Attributes:
      dim: the length of a vector.
      sequence_length: longer texts are cut to this many tokens, [CLS] and [SEP] included.
      texts_cut: how many texts `encode` has cut so far.
    """

    dim: int
    sequence_length: int
    texts_cut: int = 0

    @abc.abstractmethod
    def _tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`[n]` strings -> int32 ragged `[n, (tokens)]`, without special tokens."""

    @abc.abstractmethod
    def _embed(self, tokens: tf.RaggedTensor, length: int) -> np.ndarray:
        """Ragged `[n, (tokens)]`, to be padded to `length` -> `[n, dim]`, not normalised."""

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> np.ndarray:
        """Returns an embedding a text, in the order of the texts.

        Args:
          texts: any strings, the empty one too.
          show_progress: on stderr.

        Returns:
          float32 `[len(texts), dim]`, rows of unit length.
        """
        if isinstance(texts, str):
            raise TypeError("encode() takes a list of strings, not one string")
        vectors = np.empty((len(texts), self.dim), np.float32)
        progress = Progress("embed", total=len(texts), unit="sentence") if show_progress else None
        for start in range(0, len(texts), _SENTENCES_A_WINDOW):
            window = list(texts[start : start + _SENTENCES_A_WINDOW])
            self._encode_window(window, vectors[start : start + len(window)], progress)
        if progress:
            progress.__exit__(None)
        return vectors

    def _encode_window(
        self, texts: list[str], vectors: np.ndarray, progress: Progress | None
    ) -> None:
        tokens = self._tokenize(tf.constant(texts))
        lengths = tokens.row_lengths().numpy() + 2
        self.texts_cut += int(np.sum(lengths > self.sequence_length))
        lengths = np.minimum(lengths, self.sequence_length)
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            longest = -(-int(lengths[order[start]]) // _LENGTH_STEP) * _LENGTH_STEP
            longest = min(longest, self.sequence_length)
            rows = order[start : start + max(1, _TOKENS_A_BATCH // longest)]
            pooled = self._embed(tf.gather(tokens, rows), longest)
            vectors[rows] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
            start += len(rows)
            if progress:
                progress.update(len(rows))


class Embedder(SortingEncoder):
    """A loaded model dir."""

    def __init__(self, model_dir: str | os.PathLike[str]) -> None:
        """Raises InputError if `model_dir` is no model dir."""
        check_saved_models(model_dir)
        self._preprocessor = tf.saved_model.load(os.path.join(model_dir, "preprocessor"))
        self._encoder = tf.saved_model.load(os.path.join(model_dir, "encoder"))
        packed = self._preprocessor(tf.constant([""]))
        self.sequence_length = packed["input_word_ids"].shape[1]
        self.dim = self._encoder(packed)["default"].shape[1]

    def count_weights(self) -> int:
        """Returns the number of the encoder's weights."""
        return sum(
            math.prod(weight.shape) for weight in self._encoder.variables if weight.shape.rank
        )

    def _tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._preprocessor.tokenize(texts).merge_dims(1, 2)

    def _embed(self, tokens: tf.RaggedTensor, length: int) -> np.ndarray:
        packed = self._preprocessor.bert_pack_inputs([tokens], seq_length=tf.constant(length))
        return self._encoder(packed)["default"].numpy()
