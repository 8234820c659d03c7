"""Embeds text with a model dir, as the paper defines it: the normalised `default` output."""

from __future__ import annotations

import abc
import os
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the preprocessor's ops.

from labse_tf.embedding.model_dir import (
    NO_LANGUAGE,
    describe,
    find_model_dir,
    is_laser_2018,
    num_layers,
)
from labse_tf.embedding.runtimes import open_runtime
from labse_tf.embedding.windows import WindowEncoder
from labse_tf.errors import InputError
from labse_tf.progress import Progress
from labse_tf.tokenization import laser_2018

# The texts of a window are sorted by length, so that its batches contain little padding.
_TEXTS_PER_WINDOW = 2048
# A layer's output for one batch stays in the processor's caches.
_TOKENS_PER_BATCH = 2048
# Without layers, there are only the tokens' vectors, once: the fewer batches, the better.
_TOKENS_PER_STATIC_BATCH = 65536
# Few different shapes, so that memory is reused from batch to batch.
_LENGTH_STEP = 8


class SortingEncoder(WindowEncoder):
    """Encoder that sorts texts by length within a window, to reduce padding."""

    _texts_per_window = _TEXTS_PER_WINDOW
    _tokens_per_batch: int = _TOKENS_PER_BATCH

    def _has_no_layers(self) -> None:
        self._tokens_per_batch = _TOKENS_PER_STATIC_BATCH

    @abc.abstractmethod
    def _embed(self, tokens: tf.RaggedTensor, length: int) -> np.ndarray:
        """Maps ragged `[n, (tokens)]`, padded to `length`, to `[n, dim]`, not normalised."""

    def _encode_window(
        self, tokens: tf.RaggedTensor, vectors: np.ndarray, progress: Progress | None
    ) -> None:
        lengths = tokens.row_lengths().numpy() + self._special_tokens
        lengths = np.minimum(lengths, self.sequence_length)
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            longest = -(-int(lengths[order[start]]) // _LENGTH_STEP) * _LENGTH_STEP
            longest = min(longest, self.sequence_length)
            rows = order[start : start + max(1, self._tokens_per_batch // longest)]
            pooled = self._embed(tf.gather(tokens, rows), longest)
            vectors[rows] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
            start += len(rows)
            if progress:
                progress.update(len(rows))


class Embedder(SortingEncoder):
    """A loaded model dir."""

    def __init__(self, path: str | os.PathLike[str], *, language: str | None = None) -> None:
        """Loads the preprocessor and an encoder.

        Args:
          path: a model dir, for its `encoder`; or an encoder file in it, such as
            MODEL_DIR/onnx/model_int8.onnx or MODEL_DIR/lite/encoder_int8.tflite.
          language: as for `labse_tf.load`.

        Raises:
          InputError: if it is not a model dir, or the file is not an encoder in one, or as
            `labse_tf.load`.
        """
        model_dir, encoder = find_model_dir(path)
        self._preprocessor = _open_preprocessor(model_dir, language)
        self._runtime = open_runtime(encoder)
        packed = self._preprocessor(tf.constant([""]))
        self.sequence_length = packed["input_word_ids"].shape[1]
        self._special_tokens = int(packed["input_mask"].numpy().sum())
        self.dim = self._runtime.run(packed).shape[1]
        if num_layers(model_dir) == 0:
            self._has_no_layers()

    def count_weights(self) -> int | None:
        """Returns the encoder's number of weights; None if its format does not provide it."""
        return self._runtime.count_weights()

    def _tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._preprocessor.tokenize(texts).merge_dims(1, 2)

    def _embed(self, tokens: tf.RaggedTensor, length: int) -> np.ndarray:
        packed = self._preprocessor.bert_pack_inputs([tokens], seq_length=tf.constant(length))
        return self._runtime.run(packed)


def _open_preprocessor(model_dir: Path, language: str | None):
    """Returns a model dir's SavedModel, or the Python object that stands in for it."""
    if is_laser_2018(model_dir):
        length = describe(model_dir)["sequence_length"]
        return laser_2018.open_preprocessor(model_dir, length=length, language=language)
    if language is not None:
        raise InputError(NO_LANGUAGE, path=model_dir, remedy="leave the language out")
    return tf.saved_model.load(str(model_dir / "preprocessor"))
