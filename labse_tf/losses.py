"""The translation ranking loss with additive margin softmax (LaBSE, equations 1 to 4).

Pure functions of tensors: no model, no strategy. Under several replicas the candidates are the
gathered rows of all of them, and `positive_offset` says where a replica's own rows start.
"""

from __future__ import annotations

import tensorflow as tf


def additive_margin_softmax(
    queries: tf.Tensor,
    candidates: tf.Tensor,
    *,
    positive_offset: int | tf.Tensor = 0,
    margin: float = 0.3,
    scale: float = 10.0,
    ignored: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns the loss of each query; equations 3 and 4 with n candidates.

    With phi the dot product of unit rows, i a query and p = positive_offset + i its translation:
    `-log( exp(s * (phi(i, p) - m)) / (exp(s * (phi(i, p) - m)) + sum_{k != p} exp(s * phi(i, k))))`

    Args:
      queries: `[batch, dim]` float tensor of unit rows.
      candidates: `[n, dim]` float tensor of unit rows, n >= positive_offset + batch.
      positive_offset: the row in `candidates` that translates the first query; the others follow.
      margin: m, taken off the similarity of the positives (section 6.1; the paper's is 0.3).
      scale: s, multiplies all similarities (the paper's is 10).
      ignored: `[batch, n]` bool tensor, true where a candidate is not to be a query's negative, as
        `duplicates` gives it; such k are left out of the sum. Never true for a positive.

    Returns:
      `[batch]` float32 tensor.

    Example: similarities 0.8 and 0.6 less a margin of 0.2, so that both are 0.6: log 2.

      >>> queries = tf.constant([[0.8, 0.6]])
      >>> candidates = tf.constant([[1.0, 0.0], [0.0, 1.0]])
      >>> additive_margin_softmax(queries, candidates, margin=0.2).numpy().round(4)
      array([0.6931], dtype=float32)
    """
    similarities = tf.matmul(queries, candidates, transpose_b=True)
    positives = positive_offset + tf.range(tf.shape(queries)[0])
    is_positive = tf.one_hot(positives, tf.shape(candidates)[0], dtype=similarities.dtype)
    logits = tf.cast(scale * (similarities - margin * is_positive), tf.float32)
    if ignored is not None:
        logits = tf.where(ignored, logits.dtype.min, logits)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=positives, logits=logits)


def duplicates(
    keys: tf.Tensor, candidate_keys: tf.Tensor, *, positive_offset: int | tf.Tensor = 0
) -> tf.Tensor:
    """Returns which candidates are false negatives: pairs that share a text with the query's pair.

    A corpus of several languages repeats its English sentences. Another translation of a query's
    text is no wrong answer to it, so rows with an equal source or target are not to be each other's
    negatives, in either direction.

    Args:
      keys: `[sides, batch]` integer tensor, equal where texts are: hashes of sources and targets.
      candidate_keys: `[sides, n]`, those of the candidates' pairs.
      positive_offset: as in `additive_margin_softmax`.

    Returns:
      `[batch, n]` bool tensor, false for the positives.

    Example: the first two of three pairs have the same source.

      >>> keys = tf.constant([[5, 5, 6], [7, 8, 9]])
      >>> duplicates(keys, keys).numpy()
      array([[False,  True, False],
             [ True, False, False],
             [False, False, False]])
    """
    equal = tf.reduce_any(keys[:, :, None] == candidate_keys[:, None, :], axis=0)
    positives = positive_offset + tf.range(tf.shape(keys)[1])
    return equal & (positives[:, None] != tf.range(tf.shape(candidate_keys)[1])[None])


def translation_ranking_loss(
    source: tf.Tensor, target: tf.Tensor, *, margin: float = 0.3, scale: float = 10.0
) -> tf.Tensor:
    """Returns the mean loss of both directions, summed: equation 2, L + L'.

    Args:
      source: `[n, dim]` float tensor of unit rows.
      target: `[n, dim]` float tensor of unit rows; row i translates row i of `source`.
      margin: as in `additive_margin_softmax`.
      scale: as in `additive_margin_softmax`.

    Returns:
      A float32 scalar.

    Example: each source is its target, and as far as can be from the other one.

      >>> source = tf.constant([[1.0, 0.0], [-1.0, 0.0]])
      >>> round(float(translation_ranking_loss(source, source, margin=0.5, scale=1.0)), 4)
      0.4028
    """
    forward = additive_margin_softmax(source, target, margin=margin, scale=scale)
    backward = additive_margin_softmax(target, source, margin=margin, scale=scale)
    return tf.reduce_mean(forward) + tf.reduce_mean(backward)
