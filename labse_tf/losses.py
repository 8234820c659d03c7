"""Losses: translation ranking with additive margin softmax (LaBSE, equations 1 to 4), and a softmax
over a sample of the vocabulary.

Pure functions of tensors: no model, no strategy. With several replicas, the candidates are the
rows gathered from all of them, and `positive_offset` is where a replica's own rows start.
"""

from __future__ import annotations

import functools
import math

import tensorflow as tf

from labse_tf.errors import InputError

# Sums of thousands of exp(60), and their inverses, are within float32's range.
_MOST_EXPONENT = 60.0


def margin_cross_entropy(
    similarities: tf.Tensor,
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
      similarities: `[batch, n]` float tensor, phi of queries and candidates, n >= positive_offset +
        batch.
      positive_offset: the candidate that translates the first query; the others follow.
      margin: m, subtracted from the similarity of the positives (section 6.1; 0.3 in the paper).
      scale: s, multiplies all similarities (10 in the paper).
      ignored: `[batch, n]` bool tensor, true where a candidate must not be a query's negative (see
        `duplicates`); such k are left out of the sum. Never true for a positive.

    Returns:
      `[batch]` float32 tensor.

    Example: similarities 0.8 and 0.6; the margin of 0.2 makes both 0.6, so the loss is log 2.

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


def margin_cross_entropies(
    similarities: tf.Tensor,
    *,
    margin: float = 0.3,
    scale: float = 10.0,
    ignored: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns the loss of each pair in both directions, summed, from one matrix.

    Same as `margin_cross_entropy` of `similarities` plus that of their transpose, in half the time:
    both need the same exponentials.

    Args:
      similarities: `[batch, batch]` float tensor, phi of sources and targets; -1 to 1.
      margin: as in `margin_cross_entropy`, as is `scale`.
      scale: see there.
      ignored: `[batch, batch]`, symmetric; see there.

    Returns:
      `[batch]` float32 tensor.

    Example: a source and its only target have a loss of 0 whatever their similarity.

      >>> margin_cross_entropies(tf.constant([[0.8]])).numpy().round(4)
      array([0.], dtype=float32)
    """
    if scale * (1 + abs(margin)) > _MOST_EXPONENT:
        loss = functools.partial(margin_cross_entropy, margin=margin, scale=scale, ignored=ignored)
        return loss(similarities) + loss(tf.transpose(similarities))

    # Its own gradient: one pass over the matrix in place of five.
    @tf.custom_gradient
    def losses(similarities):
        own = tf.linalg.diag_part(similarities) - margin
        powers = tf.exp(scale * tf.linalg.set_diag(similarities, own))
        if ignored is not None:
            powers = tf.where(ignored, 0.0, powers)
        rows, columns = tf.reduce_sum(powers, axis=1), tf.reduce_sum(powers, axis=0)

        def gradient(slopes):
            slopes = scale * slopes
            slope = powers * ((slopes / rows)[:, tf.newaxis] + (slopes / columns)[tf.newaxis])
            return tf.linalg.set_diag(slope, tf.linalg.diag_part(slope) - 2 * slopes)

        return tf.math.log(rows) + tf.math.log(columns) - 2 * scale * own, gradient

    return losses(tf.cast(similarities, tf.float32))


def leading_columns(rows: tf.Tensor, dim: int) -> tf.Tensor:
    """Returns the first `dim` columns of unit rows, scaled to unit length again.

    With the loss of these for several dimensions, the first columns of a vector learn to be a
    shorter vector (Kusupati et al. 2022, arXiv 2205.13147, equation 1 with normalised columns).

    Args:
      rows: `[n, width]` float tensor of unit rows, of a known width.
      dim: from 1 to width; with the width itself, `rows` are returned as they are.

    Returns:
      `[n, dim]` tensor of unit rows.

    Raises:
      InputError: if the rows have fewer columns.

    Example:

      >>> leading_columns(tf.constant([[0.48, 0.64, 0.6]]), 2).numpy().round(4)
      array([[0.6, 0.8]], dtype=float32)
    """
    width = rows.shape[-1]
    if dim > width:
        raise InputError(
            f"'matryoshka' has {dim} dimensions, and the encoder's vectors {width}",
            remedy="name fewer",
        )
    return rows if dim == width else tf.math.l2_normalize(rows[:, :dim], axis=-1)


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
      positive_offset: as in `margin_cross_entropy`.

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
      margin: as in `margin_cross_entropy`, as is `scale`.
      scale: see there.

    Returns:
      A float32 scalar.

    Example: each source equals its target and is opposite to the other one.

      >>> source = tf.constant([[1.0, 0.0], [-1.0, 0.0]])
      >>> round(float(translation_ranking_loss(source, source, margin=0.5, scale=1.0)), 4)
      0.4028
    """
    similarities = tf.matmul(source, target, transpose_b=True)
    return tf.reduce_mean(margin_cross_entropies(similarities, margin=margin, scale=scale))


def sampled_softmax(
    hidden: tf.Tensor, labels: tf.Tensor, table: tf.Variable, bias: tf.Variable, drawn: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the cross-entropy of each row, and whether its label scores highest in the sample.

    For machines too small for the whole vocabulary. The sum over the vocabulary in the softmax has
    two parts: the labels of the batch, whose sum is exact, and all other tokens, whose sum is
    estimated from tokens drawn uniformly, each representing `vocab_size / n` of them. The estimate
    is unbiased (importance sampling, Bengio and Senecal 2003; the batch's labels as a separate
    stratum, after Jean et al. 2015, section 3.2). Rows of the table that are neither labels nor
    drawn get no gradient.

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
