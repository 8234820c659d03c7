"""Softmax cross-entropy over a sample of the vocabulary, for machines too small for all of it.

The sum over the vocabulary in the softmax has two parts: the labels of the batch, whose sum is
exact, and all other tokens, whose sum is estimated from tokens drawn uniformly, each representing
`vocab_size / n` of them. The estimate is unbiased (importance sampling, Bengio and Senecal 2003;
the batch's labels as a separate stratum, after Jean et al. 2015, section 3.2). Rows of the table
that are neither labels nor drawn get no gradient.
"""

from __future__ import annotations

import math

import tensorflow as tf


def sampled_softmax(
    hidden: tf.Tensor, labels: tf.Tensor, table: tf.Variable, bias: tf.Variable, drawn: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the cross-entropy of each row, and whether its label scores highest in the sample.

    Args:
      hidden: `[n, dim]` float.
      labels: `[n]` int32.
      table: `[vocab_size, dim]`, the output embeddings.
      bias: `[vocab_size]`.
      drawn: `[samples]` int32, uniform draws from the vocabulary; see `draw_uniform`.

    Returns:
      Two float32 `[n]` tensors: nats, and 1 or 0.
    """
    exact, place = tf.unique(labels)
    rows = tf.concat([exact, drawn], axis=0)
    logits = tf.matmul(hidden, tf.gather(table, rows), transpose_b=True) + tf.gather(bias, rows)
    logits = tf.cast(logits, tf.float32)
    hits = tf.cast(tf.argmax(logits, axis=1, output_type=tf.int32) == place, tf.float32)
    # A label that is also drawn would count twice.
    is_label = tf.reduce_any(drawn[:, tf.newaxis] == exact[tf.newaxis], axis=1)
    stands_for = math.log(table.shape[0]) - tf.math.log(tf.cast(tf.size(drawn), tf.float32))
    weights = tf.where(is_label, -math.inf, stands_for)
    logits += tf.concat([tf.zeros_like(exact, tf.float32), weights], axis=0)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=place, logits=logits)
    return losses, hits


def draw_uniform(count: int, vocab_size: int, seed: tf.Tensor) -> tf.Tensor:
    """Returns `[count]` int32 ids below `vocab_size`, a function of `seed` (`[2]` integers)."""
    return tf.random.stateless_uniform([count], seed, 0, vocab_size, tf.int32)
