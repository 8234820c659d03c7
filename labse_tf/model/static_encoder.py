"""An encoder without layers: a sentence is the average of its tokens' vectors."""

from __future__ import annotations

import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers

from labse_tf.config import EncoderConfig
from labse_tf.model.protocol import symbolic_inputs
from labse_tf.model.subwords import Subwords

# Columns that stay 0 in each row. A layer norm needs them if layers are put on top: see
# `grow_layers` in `model.stacking`.
SPARE_COLUMNS = 2


class StaticEncoder(tf_keras.layers.Layer):
    """Takes the inputs of the BERT encoder and gives outputs of the same names and shapes.

    With e(t) the row of token t, and n tokens between [CLS] and [SEP]:

        pooled = (e(t_1) + ... + e(t_n)) / n

    [CLS], the last [SEP] and padding do not count. Neither positions nor token types matter. The
    last SPARE_COLUMNS columns of the table begin as 0, and a loss that sees only products of
    embeddings leaves them so: each one's gradient is a sum of other embeddings' same columns.
    """

    def __init__(
        self,
        config: EncoderConfig,
        *,
        embedding_layer: tf_keras.layers.Layer | None = None,
        subwords: Subwords | None = None,
    ) -> None:
        """Makes the layer; its variables exist once it is called.

        Args:
          config: `vocab_size`, `hidden_size` and `initializer_range` are read.
          embedding_layer: to look tokens up, instead of a table of float32.
          subwords: e(t) is a sum of rows of the table; None: e(t) is row t. Only with these,
            `split_rate` is read.
        """
        # There is no product of matrices that bfloat16 would make faster.
        super().__init__(name="encoder", dtype="float32")
        self._parts = subwords and subwords.rows
        self._splitting = None
        if config.split_rate and subwords:
            # Draws which tokens to split; a run replays and resumes it as any dropout.
            self._splitting = tf_keras.layers.Dropout(config.split_rate)
            self._splitting.build(())
            # Token t whole at t, and split at t + tokens.
            self._tokens = self._parts.shape[0]
            self._parts = tf.concat([self._parts, subwords.split_rows()], axis=0)
        self._embedding_layer = embedding_layer or layers.OnDeviceEmbedding(
            vocab_size=subwords.count if subwords else config.vocab_size,
            embedding_width=config.hidden_size,
            initializer=_SpareColumns(config.initializer_range),
            name="word_embeddings",
            dtype="float32",
        )
        self.inputs = symbolic_inputs()
        self.transformer_layers: list = []

    def get_embedding_table(self) -> tf.Variable:
        """Returns the table: float32 `[vocab_size, hidden_size]`, or with subwords more rows."""
        return self._embedding_layer.embeddings

    def rows(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the rows of the table that `inputs` read: int32 `[batch, length]`.

        With subwords: `[n]`.
        """
        ids = inputs["input_word_ids"]
        if self._parts is None:
            return ids
        distinct = tf.unique(tf.reshape(ids, [-1]))[0]
        if self._splitting is not None:
            distinct = tf.concat([distinct, distinct + self._tokens], axis=0)
        return tf.gather(self._parts, distinct).values

    def call(
        self, inputs: dict[str, tf.Tensor], training: bool | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns `pooled_output`, `[batch, hidden_size]`, and the tokens' vectors.

        Args:
          inputs: int32 `[batch, length]` tensors as `Tokenizer.pack` gives them; of these,
            `input_type_ids` is not read.
          training: look each distinct token up only once. That saves most of a step's time, but has
            no static shapes, which a TPU needs.

        Returns:
          `pooled_output`, `sequence_output` (`[batch, length, hidden_size]`) and `encoder_outputs`:
          a list of the latter alone.
        """
        ids = inputs["input_word_ids"]
        weights = average_weights(inputs["input_mask"])
        on_tpu = isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy)
        if self._parts is None and (on_tpu or not training):
            vectors = self._embedding_layer(ids)
            pooled = tf.squeeze(tf.matmul(weights[:, tf.newaxis], vectors), axis=1)
        else:
            distinct, places = tf.unique(tf.reshape(ids, [-1]))
            places = tf.reshape(places, tf.shape(ids))
            rows = self._vectors(distinct, training)
            vectors = tf.gather(rows, places)
            pooled = _average(rows, places, weights)
        return {
            "pooled_output": pooled,
            "sequence_output": vectors,
            "encoder_outputs": [vectors],
        }

    def _vectors(self, ids: tf.Tensor, training: bool | None) -> tf.Tensor:
        """Returns `[n, hidden_size]`, the vectors of `[n]` distinct tokens."""
        if self._parts is None:
            return self._embedding_layer(ids)
        if training and self._splitting is not None:
            whole = self._splitting(tf.ones(tf.shape(ids)), training=True)
            ids += self._tokens * tf.cast(whole == 0, tf.int32)
        parts = tf.gather(self._parts, ids)
        distinct, places = tf.unique(parts.values)
        rows = self._embedding_layer(distinct)
        # Else TensorFlow's graph optimiser merges look-up and sum (SimplifyEmbeddingLookupStage),
        # and each step copies the whole table.
        rows = tf.ensure_shape(rows, [None, rows.shape[-1]])
        return tf.sparse.segment_sum(rows, places, parts.value_rowids())


def _average(rows: tf.Tensor, places: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns `[batch, width]`: the averages of rows of `[n, width]`, at `[batch, length]`."""
    read = tf.where(weights > 0)
    sums = tf.sparse.segment_sum(
        rows, tf.gather_nd(places, read), read[:, 0], num_segments=tf.shape(places)[0]
    )
    return sums * tf.reduce_max(weights, axis=1, keepdims=True)


def average_weights(mask: tf.Tensor, dtype: tf.DType = tf.float32) -> tf.Tensor:
    """Returns `[batch, length]`: 1 / n at the n tokens between the first and the last, else 0.

    If there are none, the others count: the vector of a text without tokens is not zero.

    Args:
      mask: `[batch, length]`: 1 at tokens, from the first position on, 0 at padding.
      dtype: of the result.
    """
    # [CLS] is the first token, and after the last one, [SEP], comes none.
    followed = tf.pad(mask[:, 1:], [[0, 0], [0, 1]])
    inner = mask * followed * tf.cast(tf.range(tf.shape(mask)[1]) > 0, mask.dtype)
    has_inner = tf.reduce_max(inner, axis=1, keepdims=True) > 0
    counted = tf.cast(tf.where(has_inner, inner, mask), dtype)
    return counted / tf.reduce_sum(counted, axis=1, keepdims=True)


class _SpareColumns(tf_keras.initializers.Initializer):
    """Random numbers, and zeros in the last columns."""

    def __init__(self, initializer_range: float) -> None:
        self._random = tf_keras.initializers.TruncatedNormal(stddev=initializer_range)

    def __call__(self, shape, dtype=None, **kwargs) -> tf.Tensor:
        rows, width = shape
        random = self._random((rows, width - SPARE_COLUMNS), dtype)
        return tf.pad(random, [[0, 0], [0, SPARE_COLUMNS]])
