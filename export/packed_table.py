"""An encoder whose embedding table takes two bytes or one a weight: it is most of a LaBSE."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from export.source import Source
from labse_tf.model.encoder import build_encoder

DTYPES = ("float32", "float16", "int8")


class PackedEmbedding(tf_keras.layers.Layer):
    """Looks rows up in float16, or in int8 with a scale a row; gives float32. Not trainable.

    In int8 a row is `scale * embeddings`, its largest absolute value being 127 * scale.
    """

    def __init__(self, table: np.ndarray, dtype: str) -> None:
        """Packs a float32 `[rows, width]` table as `dtype`."""
        super().__init__(name="word_embeddings", dtype="float32", trainable=False)
        self._packed = tf.as_dtype(dtype)
        self._scales = None
        if dtype == "int8":
            scales = np.abs(table).max(axis=1, keepdims=True) / 127
            table = np.rint(table / np.where(scales > 0, scales, 1))
            self._scales = self._weight("scales", scales.astype(np.float32))
        self.embeddings = self._weight("embeddings", table.astype(self._packed.as_numpy_dtype))

    def _weight(self, name: str, value: np.ndarray) -> tf.Variable:
        start = tf_keras.initializers.Constant(value)
        return self.add_weight(name, value.shape, value.dtype, initializer=start, trainable=False)

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        rows = tf.cast(tf.gather(self.embeddings, ids), tf.float32)
        return rows if self._scales is None else rows * tf.gather(self._scales, ids)


def pack_table(source: Source, dtype: str) -> Source:
    """Returns the model with its embedding table in `dtype`, one of DTYPES; without an MLM head."""
    if dtype == "float32":
        return source
    table = PackedEmbedding(source.encoder.get_embedding_table().numpy(), dtype)
    encoder = build_encoder(
        dataclasses.replace(source.config, averaging_start=False), embedding_layer=table
    )
    weights = {variable.name: variable for variable in source.encoder.variables}
    for variable in encoder.variables:
        if "word_embeddings" not in variable.name:
            variable.assign(weights[variable.name])
    return dataclasses.replace(source, encoder=encoder, head=None)
