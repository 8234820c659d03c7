"""A deep averaging network: a weaker encoder, which finds hard negatives.

Tokens and bigrams are embedded, averaged and passed through dense layers (Iyyer et al. 2015, "Deep
Unordered Composition Rivals Syntactic Methods for Text Classification"; with bigrams and the square
root in the average as in the DAN of Cer et al. 2018, "Universal Sentence Encoder").
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.config import EncoderConfig
from labse_tf.model.protocol import INPUT_NAMES

# Odd multipliers that spread ids over 32 bits, and the shift that mixes high bits into low ones.
_LEFT, _RIGHT, _SHIFT = 2654435761, 2246822519, 15
_32_BITS = 0xFFFFFFFF


class AveragingEncoder(tf_keras.Model):
    """Takes the inputs of the BERT encoder and returns a `pooled_output`, like BERT.

    Let e_1 to e_n be the embeddings of a sentence's n tokens and n - 1 bigrams ([CLS] and [SEP]
    count as tokens). With h_0 = sum(e) / sqrt(n):

        h_l = h_(l-1) + gelu(W_l layer_norm(h_(l-1)) + b_l),  pooled = W layer_norm(h_L) + b
    """

    def __init__(self, config: EncoderConfig, *, bigram_buckets: int = 1 << 18) -> None:
        """Bigrams of tokens are hashed to `bigram_buckets` rows."""
        super().__init__(name="averaging_encoder")
        self._vocab_size, self._bigram_buckets = config.vocab_size, bigram_buckets
        # One table for both, so that one gather reads them; the optimiser finds it by its name.
        self._table = self.add_weight(
            name="word_embeddings",
            shape=[config.vocab_size + bigram_buckets, config.hidden_size],
            initializer=tf_keras.initializers.TruncatedNormal(stddev=config.initializer_range),
        )
        self._norms = [
            tf_keras.layers.LayerNormalization(epsilon=1e-6, name=f"layer_norm_{layer}")
            for layer in range(config.num_layers + 1)
        ]
        self._hidden_layers = [
            tf_keras.layers.Dense(config.hidden_size, "gelu", name=f"dense_{layer}")
            for layer in range(config.num_layers)
        ]
        self._pooler = tf_keras.layers.Dense(config.hidden_size, name="pooler")
        self._dropout = tf_keras.layers.Dropout(config.dropout)
        self(dict.fromkeys(INPUT_NAMES, tf.zeros([1, 4], tf.int32)))

    def get_embedding_table(self) -> tf.Variable:
        """Returns the embeddings of tokens, then bigrams: `[vocab_size + buckets, hidden_size]`."""
        return self._table

    def rows(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the rows of the table that `inputs` need, int32: tokens, then bigrams."""
        ids = inputs["input_word_ids"]
        left, right = (tf.cast(side, tf.int64) for side in (ids[:, :-1], ids[:, 1:]))
        mixed = tf.bitwise.bitwise_and(left * _LEFT + right * _RIGHT, _32_BITS)
        mixed = tf.bitwise.bitwise_xor(mixed, tf.bitwise.right_shift(mixed, _SHIFT))
        bigrams = tf.cast(mixed % self._bigram_buckets, tf.int32)
        return tf.concat([ids, self._vocab_size + bigrams], axis=1)

    def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None):
        """Returns `{"pooled_output": float32 [batch, hidden_size]}`."""
        is_token = tf.cast(inputs["input_mask"], tf.float32)
        # A bigram counts if its second token is not padding.
        weights = tf.concat([is_token, is_token[:, 1:]], axis=1)
        weights *= tf.math.rsqrt(tf.maximum(tf.reduce_sum(is_token, axis=1, keepdims=True), 1.0))
        embeddings = tf.gather(self._table, self.rows(inputs))
        hidden = tf.squeeze(tf.matmul(weights[:, tf.newaxis], embeddings), axis=1)
        for norm, layer in zip(self._norms, self._hidden_layers, strict=False):
            hidden += self._dropout(layer(norm(hidden)), training=training)
        return {"pooled_output": self._pooler(self._norms[-1](hidden))}
