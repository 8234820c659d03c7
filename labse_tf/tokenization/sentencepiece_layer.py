"""A layer that splits text by a model of SentencePiece."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf
import tensorflow_text as text
import tf_keras


class SentencePieceLayer(tf_keras.layers.Layer):
    """`[batch]` strings -> int32 ragged `[batch, (1), (tokens)]`: a text counts as one word."""

    def __init__(
        self,
        model: bytes,
        *,
        normalize: Callable[[tf.Tensor], tf.Tensor],
        ids: Sequence[int] | None = None,
    ) -> None:
        """Makes the layer.

        Args:
          model: of SentencePiece, serialised.
          normalize: `[batch]` strings to strings, before they are split.
          ids: for each of its pieces, the id to return; None: the model's own.
        """
        super().__init__(name="sentencepiece", dtype="int32", trainable=False)
        self._model, self._normalize = model, normalize
        self._ids = None if ids is None else list(ids)

    def call(self, strings: tf.Tensor) -> tf.RaggedTensor:
        # Made in the graph that is traced: outside, the model belongs to a kernel that TensorFlow
        # drops when a random seed is set.
        pieces = text.SentencepieceTokenizer(self._model, out_type=tf.int32)
        tokens = pieces.tokenize(self._normalize(strings))
        if self._ids is not None:
            tokens = tokens.with_flat_values(tf.gather(tf.constant(self._ids), tokens.flat_values))
        # Not `expand_dims`: that gives a dimension that is not ragged.
        return tf.RaggedTensor.from_row_splits(tokens, tf.range(tokens.nrows() + 1), validate=False)
