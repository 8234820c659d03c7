"""The translation ranking loss with additive margin softmax (LaBSE, equations 1 to 4).

Pure functions of tensors: no model, no strategy. With several replicas, the candidates are the
rows gathered from all of them, and `positive_offset` is where a replica's own rows start.
"""

from __future__ import annotations

import functools

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
    """Returns the loss of each query: equations 3 and 4 with n candidates.

    With phi the dot product of unit rows and p = positive_offset + i the translation of query i:
    `-log( exp(s * (phi(i, p) - m)) / (exp(s * (phi(i, p) - m)) + sum_{k != p} exp(s * phi(i, k))))`

    Args:
      queries: `[batch, dim]` float tensor of unit rows.
      candidates: `[n, dim]` float tensor of unit rows, n >= positive_offset + batch.
      positive_offset: the row in `candidates` that translates the first query; the others follow.
      margin: m, subtracted from the similarity of the positives (section 6.1; 0.3 in the paper).
      scale: s, multiplies all similarities (10 in the paper).
      ignored: `[batch, n]` bool tensor, true where a candidate must not be a query's negative (see
        `duplicates`); such k are left out of the sum. Never true for a positive.

    Returns:
      `[batch]` float32 tensor.

    Example: similarities 0.8 and 0.6; the margin of 0.2 makes both 0.6, so the loss is log 2.

      >>> queries = tf.constant([[0.8, 0.6]])
      >>> candidates = tf.constant([[1.0, 0.0], [0.0, 1.0]])
      >>> additive_margin_softmax(queries, candidates, margin=0.2).numpy().round(4)
      array([0.6931], dtype=float32)
    """
    return margin_cross_entropy(
        tf.matmul(queries, candidates, transpose_b=True),
        positive_offset=positive_offset,
        margin=margin,
        scale=scale,
        ignored=ignored,
    )


def margin_cross_entropy(
    similarities: tf.Tensor,
    *,
    positive_offset: int | tf.Tensor = 0,
    margin: float = 0.3,
    scale: float = 10.0,
    ignored: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns the loss of each query from its similarities to the candidates.

    Args:
      similarities: `[batch, n]` float tensor, phi of queries and candidates.
      positive_offset: as in `additive_margin_softmax`, as are the others.
      margin: see there.
      scale: see there.
      ignored: see there.

    Returns:
      `[batch]` float32 tensor.

    Example: as that of `additive_margin_softmax`.

      >>> margin_cross_entropy(tf.constant([[0.8, 0.6]]), margin=0.2).numpy().round(4)
      array([0.6931], dtype=float32)
    """
    batch, candidates = tf.unstack(tf.shape(similarities))
    positives = positive_offset + tf.range(batch)
    lowered = tf.one_hot(positives, candidates, on_value=scale * margin, off_value=0.0)
    logits = scale * tf.cast(similarities, tf.float32) - lowered
    if ignored is not None:
        logits = tf.where(ignored, logits.dtype.min, logits)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=positives, logits=logits)


def duplicates(
    keys: tf.Tensor, candidate_keys: tf.Tensor, *, positive_offset: int | tf.Tensor = 0
) -> tf.Tensor:
    """Returns which candidates are false negatives: pairs that share a text with the query's pair.

    A multilingual corpus repeats its English sentences. Another translation of a query's text is
    not a wrong answer, so rows with an equal source or target must not be each other's negatives,
    in either direction.

    Args:
      keys: `[sides, batch]` integer tensor of text hashes, one row each for sources and targets.
      candidate_keys: `[sides, n]`, the hashes of the candidates' pairs.
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
    ours, theirs = keys[:, :, None], candidate_keys[:, None]
    # Side by side: a tensor of all comparisons would be read and written once more.
    by_side = [ours[side] == theirs[side] for side in range(keys.shape[0])]
    equal = functools.reduce(tf.logical_or, by_side)
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

    Example: each source equals its target and is opposite to the other one.

      >>> source = tf.constant([[1.0, 0.0], [-1.0, 0.0]])
      >>> round(float(translation_ranking_loss(source, source, margin=0.5, scale=1.0)), 4)
      0.4028
    """
    forward = additive_margin_softmax(source, target, margin=margin, scale=scale)
    backward = additive_margin_softmax(target, source, margin=margin, scale=scale)
    return tf.reduce_mean(forward) + tf.reduce_mean(backward)
