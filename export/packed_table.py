"""An encoder whose embedding table, most of LaBSE's weights, takes one or two bytes per weight."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from export.source import Source
from labse_tf.model.encoder import build_encoder

DTYPES = ("float32", "float16", "int8")
# The least cosine of vectors in int8 to those in float32; `labse verify` asks for it too.
LEAST_COSINE = 0.95


class PackedEmbedding(tf_keras.layers.Layer):
    """Looks up rows in float16, or in int8 with one scale per row; returns float32. Not trainable.

    In int8 a row is `scale * embeddings`; the scale is the row's largest absolute value / 127. With
    `by_column`, each column has a scale instead: some tables have a few far larger columns.
    """

    def __init__(self, rows: int, width: int, dtype: str, *, by_column: bool = False) -> None:
        """Makes a table of zeros; `pack` fills it.

        Args:
          rows: tokens of the vocabulary.
          width: of an embedding.
          dtype: "float16" or "int8".
          by_column: whether a scale is a column's.
        """
        super().__init__(name="word_embeddings", dtype="float32", trainable=False)
        self._rows, self._width, self._packed = rows, width, tf.as_dtype(dtype)
        self._by_column = by_column

    def build(self, input_shape) -> None:
        shape = (self._rows, self._width)
        self.embeddings = self.add_weight("embeddings", shape, self._packed, "zeros")
        self.scales = None
        if self._packed == tf.int8:
            shape = (1, self._width) if self._by_column else (self._rows, 1)
            self.scales = self.add_weight("scales", shape, tf.float32, "zeros")
        super().build(input_shape)

    def pack(self, table: np.ndarray) -> None:
        """Fills the table from a float32 `[rows, width]` array."""
        if self.scales is not None:
            scales = np.abs(table).max(axis=0 if self._by_column else 1, keepdims=True) / 127
            self.scales.assign(scales)
            table = np.rint(table / np.where(scales > 0, scales, 1))
        self.embeddings.assign(table.astype(self._packed.as_numpy_dtype))

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        rows = tf.cast(tf.gather(self.embeddings, ids), tf.float32)
        if self.scales is None:
            return rows
        return rows * (self.scales if self._by_column else tf.gather(self.scales, ids))


def pack_table(source: Source, dtype: str, *, by_column: bool = False) -> Source:
    """Returns the model with its embedding table in `dtype`, one of DTYPES; without an MLM head."""
    if dtype == "float32":
        return source
    table = source.encoder.get_embedding_table().numpy()
    layer = PackedEmbedding(*table.shape, dtype, by_column=by_column)
    config = dataclasses.replace(source.config, averaging_start=False)
    encoder = build_encoder(config, embedding_layer=layer)
    layer.pack(table)
    weights = {variable.name: variable for variable in source.encoder.variables}
    for variable in encoder.variables:
        if "word_embeddings" not in variable.name:
            variable.assign(weights[variable.name])
    return dataclasses.replace(source, encoder=encoder, head=None)


def least_cosine(found: np.ndarray, expected: np.ndarray) -> float:
    """Returns the least cosine of the rows of two arrays, `[n, dim]`, of any length."""
    # A row of zeros has the cosine 0 to any other.
    lengths = (np.linalg.norm(rows, axis=1) for rows in (found, expected))
    products = np.maximum(np.prod([*lengths], axis=0), 1e-30)
    return float(((found * expected).sum(axis=1) / products).min())
