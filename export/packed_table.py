"""An encoder whose embedding table, most of LaBSE's weights, takes one or two bytes per weight."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from export.source import Source
from labse_tf.model.encoder import build_encoder

DTYPES = ("float32", "float16", "int8")


class PackedEmbedding(tf_keras.layers.Layer):
    """Looks up rows in float16, or in int8 with one scale per row; returns float32. Not trainable.

    In int8 a row is `scale * embeddings`; the scale is the row's largest absolute value / 127.
    """

    def __init__(self, rows: int, width: int, dtype: str) -> None:
        """Makes a table of zeros; `pack` fills it.

        Args:
          rows: tokens of the vocabulary.
          width: of an embedding.
          dtype: "float16" or "int8".
        """
        super().__init__(name="word_embeddings", dtype="float32", trainable=False)
        self._rows, self._width, self._packed = rows, width, tf.as_dtype(dtype)

    def build(self, input_shape) -> None:
        shape = (self._rows, self._width)
        self.embeddings = self.add_weight("embeddings", shape, self._packed, "zeros")
        self.scales = None
        if self._packed == tf.int8:
            self.scales = self.add_weight("scales", (self._rows, 1), tf.float32, "zeros")
        super().build(input_shape)

    def pack(self, table: np.ndarray) -> None:
        """Fills the table from a float32 `[rows, width]` array."""
        if self.scales is not None:
            scales = np.abs(table).max(axis=1, keepdims=True) / 127
            self.scales.assign(scales)
            table = np.rint(table / np.where(scales > 0, scales, 1))
        self.embeddings.assign(table.astype(self._packed.as_numpy_dtype))

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        rows = tf.cast(tf.gather(self.embeddings, ids), tf.float32)
        return rows if self.scales is None else rows * tf.gather(self.scales, ids)


def pack_table(source: Source, dtype: str) -> Source:
    """Returns the model with its embedding table in `dtype`, one of DTYPES; without an MLM head."""
    if dtype == "float32":
        return source
    table = source.encoder.get_embedding_table().numpy()
    layer = PackedEmbedding(*table.shape, dtype)
    config = dataclasses.replace(source.config, averaging_start=False)
    encoder = build_encoder(config, embedding_layer=layer)
    layer.pack(table)
    weights = {variable.name: variable for variable in source.encoder.variables}
    for variable in encoder.variables:
        if "word_embeddings" not in variable.name:
            variable.assign(weights[variable.name])
    return dataclasses.replace(source, encoder=encoder, head=None)
