"""Embeds text with a model dir, as the paper defines it: the normalised `default` output."""

from __future__ import annotations

import abc
import os

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the preprocessor's ops.

from labse_tf.embedding.model_dir import find_model_dir, num_layers
from labse_tf.embedding.runtimes import open_runtime
from labse_tf.embedding.windows import WindowEncoder
from labse_tf.progress import Progress

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
        lengths = np.minimum(tokens.row_lengths().numpy() + 2, self.sequence_length)
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

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Loads the preprocessor and an encoder.

        Args:
          path: a model dir, for its `encoder`; or an encoder file in it, such as
            MODEL_DIR/onnx/model_int8.onnx or MODEL_DIR/lite/encoder_int8.tflite.

        Raises:
          InputError: if it is not a model dir, or the file is not an encoder in one.
        """
        model_dir, encoder = find_model_dir(path)
        self._preprocessor = tf.saved_model.load(str(model_dir / "preprocessor"))
        self._runtime = open_runtime(encoder)
        packed = self._preprocessor(tf.constant([""]))
        self.sequence_length = packed["input_word_ids"].shape[1]
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
