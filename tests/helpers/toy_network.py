"""An encoder network in one file: the mean of its tokens' vectors."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.config import EncoderConfig


class MeanOfTokens(tf_keras.Model):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__(name="encoder")
        self._table = self.add_weight(
            name="word_embeddings",
            shape=[config.vocab_size, config.hidden_size],
            initializer=tf_keras.initializers.TruncatedNormal(stddev=config.initializer_range),
        )

    def get_embedding_table(self) -> tf.Variable:
        return self._table

    def rows(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return inputs["input_word_ids"]

    def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None):
        weights = tf.cast(inputs["input_mask"], tf.float32)[:, :, tf.newaxis]
        vectors = tf.gather(self._table, self.rows(inputs))
        return {"pooled_output": tf.reduce_sum(weights * vectors, axis=1)}
