"""The loss against the paper's equations: by hand, in NumPy, and by finite differences."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf import losses
from labse_tf.losses import (
    draw_uniform,
    duplicates,
    margin_cross_entropies,
    margin_cross_entropy,
    sampled_softmax,
    translation_ranking_loss,
)


def unit_rows(generator, rows, width):
    matrix = generator.normal(size=(rows, width))
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def reference(queries, candidates, *, offset, margin, scale):
    """Equations 3 and 4, term by term, in float64."""
    losses = []
    for index, query in enumerate(queries):
        positive = offset + index
        top = math.exp(scale * (float(query @ candidates[positive]) - margin))
        others = sum(
            math.exp(scale * float(query @ candidate))
            for position, candidate in enumerate(candidates)
            if position != positive
        )
        losses.append(-math.log(top / (top + others)))
    return np.array(losses)


def f32(matrix):
    return tf.constant(matrix, tf.float32)


def additive_margin_softmax(queries, candidates, **options):
    return margin_cross_entropy(tf.matmul(queries, candidates, transpose_b=True), **options)


def test_by_hand():
    # phi: source 1 is (1, 0), source 2 is (0, 1); targets (0.6, 0.8) and (0.8, 0.6).
    source, target = f32([[1.0, 0.0], [0.0, 1.0]]), f32([[0.6, 0.8], [0.8, 0.6]])
    # Both positives have phi 0.6, both negatives 0.8: with m 0.3 and s 10 the logits are 3 and 8,
    # whichever side asks, so each row's loss is -log(e^3 / (e^3 + e^8)) = log(1 + e^5).
    row = math.log(1 + math.exp(5))
    np.testing.assert_allclose(additive_margin_softmax(source, target), [row, row], rtol=1e-6)
    np.testing.assert_allclose(translation_ranking_loss(source, target), 2 * row, 1e-6)
    # exp(1000) has no float32: the logits are 0 - 300 and 1000.
    found = additive_margin_softmax(source, tf.reverse(source, [0]), scale=1000.0)
    np.testing.assert_allclose(found, [1300.0, 1300.0], rtol=1e-6)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 6),
    more=st.integers(0, 5),
    offset=st.integers(0, 5),
    width=st.integers(1, 8),
    margin=st.floats(0.0, 1.0),
    scale=st.floats(0.5, 20.0),
)
def test_equals_the_numpy_reference(seed, rows, more, offset, width, margin, scale):
    offset = min(offset, more)
    generator = np.random.default_rng(seed)
    queries = unit_rows(generator, rows, width)
    candidates = unit_rows(generator, rows + more, width)
    options = {"margin": margin, "scale": scale}
    found = additive_margin_softmax(
        f32(queries), f32(candidates), positive_offset=offset, **options
    )
    expected = reference(queries, candidates, offset=offset, **options)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    # Both directions are the sum of two means.
    target = candidates[:rows]
    sides = ((queries, target), (target, queries))
    expected = sum(reference(*side, offset=0, **options).mean() for side in sides)
    for one, other in sides:
        found = translation_ranking_loss(f32(one), f32(other), **options)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_gradient_equals_finite_differences_of_the_reference():
    margin, scale = 0.3, 10.0
    generator = np.random.default_rng(11)
    source, target = unit_rows(generator, 4, 3), unit_rows(generator, 4, 3)

    def loss(source, target):
        options = {"offset": 0, "margin": margin, "scale": scale}
        forward = reference(source, target, **options).mean()
        return forward + reference(target, source, **options).mean()

    tensors = [f32(source), f32(target)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        value = translation_ranking_loss(*tensors, margin=margin, scale=scale)
    found = tape.gradient(value, tensors)
    for side, matrix in enumerate((source, target)):
        for place in np.ndindex(*matrix.shape):
            sides = [[source.copy(), target.copy()] for _ in range(2)]
            sides[0][side][place] += 1e-5
            sides[1][side][place] -= 1e-5
            slope = (loss(*sides[0]) - loss(*sides[1])) / 2e-5
            np.testing.assert_allclose(found[side][place], slope, rtol=1e-3, atol=1e-4)


def test_an_ignored_candidate_is_as_if_it_were_not_there():
    generator = np.random.default_rng(12)
    queries, candidates = unit_rows(generator, 2, 4), unit_rows(generator, 4, 4)
    # Query 0 ignores candidate 2, query 1 candidates 0 and 2.
    ignored = [[False, False, True, False], [True, False, True, False]]
    with tf.GradientTape() as tape:
        rows = tf.Variable(f32(candidates))
        found = additive_margin_softmax(f32(queries), rows, ignored=tf.constant(ignored))
    options = {"margin": 0.3, "scale": 10.0}
    first = reference(queries[:1], candidates[[0, 1, 3]], offset=0, **options)
    second = reference(queries[1:], candidates[[1, 3]], offset=0, **options)
    np.testing.assert_allclose(found, [*first, *second], rtol=1e-5)
    gradient = tape.gradient(found, rows).numpy()
    assert (gradient[2] == 0).all() and (gradient[[0, 1, 3]] != 0).any(axis=1).all()


@pytest.mark.parametrize("margin, scale", [(0.3, 10.0), (0.0, 40.0), (0.3, 200.0)])
def test_both_directions_at_once_are_both_directions(margin, scale):
    """Also with pairs that share a text, and beyond the scale at which exponentials overflow."""
    generator = np.random.default_rng(14)
    source, target = (f32(unit_rows(generator, 5, 4)) for _ in range(2))
    similarities = tf.matmul(source, target, transpose_b=True)
    keys = tf.constant([[1, 2, 1, 4, 5], [6, 7, 8, 9, 7]])
    options = {"margin": margin, "scale": scale, "ignored": duplicates(keys, keys)}
    weights = tf.constant([1.0, 2.0, 0.5, 0.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(similarities)
        found = margin_cross_entropies(similarities, **options)
        sides = (similarities, tf.transpose(similarities))
        expected = tf.add_n([margin_cross_entropy(side, **options) for side in sides])
        totals = [tf.reduce_sum(weights * one) for one in (found, expected)]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    slopes = [tape.gradient(total, similarities) for total in totals]
    np.testing.assert_allclose(*slopes, rtol=1e-4, atol=1e-4)


def test_duplicates_by_hand():
    # Pairs (7, 1), (8, 2), (7, 3), (9, 2): 0 and 2 share the source, 1 and 3 the target.
    keys = tf.constant([[7, 8, 7, 9], [1, 2, 3, 2]])
    expected = np.zeros((4, 4), bool)
    for one, other in ((0, 2), (1, 3)):
        expected[one, other] = expected[other, one] = True
    np.testing.assert_array_equal(duplicates(keys, keys), expected)
    # The second of two replicas: its pairs are candidates 2 and 3.
    found = duplicates(keys[:, 2:], keys, positive_offset=2)
    np.testing.assert_array_equal(found, expected[2:])


def test_the_examples_of_the_losses_are_true():
    result = doctest.testmod(losses)
    assert result.attempted >= 7 and result.failed == 0


# The sampled softmax against the whole one.

VOCAB, DIM, ROWS = 50, 8, 6
RANDOM = np.random.default_rng(4)
HIDDEN = RANDOM.normal(size=(ROWS, DIM)).astype(np.float32)
TABLE = RANDOM.normal(size=(VOCAB, DIM)).astype(np.float32)
BIAS = RANDOM.normal(size=VOCAB).astype(np.float32)
LABELS = np.array([3, 7, 3, 49, 0, 7], np.int32)


def test_every_token_drawn_once_is_the_whole_softmax():
    table, bias = tf.Variable(TABLE), tf.Variable(BIAS)
    hidden, labels = tf.constant(HIDDEN), tf.constant(LABELS)
    losses, hits = sampled_softmax(hidden, labels, table, bias, tf.range(VOCAB))
    logits = HIDDEN @ TABLE.T + BIAS
    expected = np.log(np.exp(logits).sum(1)) - logits[np.arange(ROWS), LABELS]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_array_equal(hits, logits.argmax(1) == LABELS)
    # Only labels and drawn rows have a gradient.
    with tf.GradientTape() as tape:
        losses, _ = sampled_softmax(hidden, labels, table, bias, tf.constant([5, 7, 20]))
        loss = tf.reduce_sum(losses)
    for gradient in tape.gradient(loss, [table, bias]):
        assert isinstance(gradient, tf.IndexedSlices)
        assert set(gradient.indices.numpy()) == {0, 3, 5, 7, 20, 49}


def test_the_sum_over_the_vocabulary_is_estimated_without_bias():
    table, bias = tf.Variable(TABLE), tf.Variable(BIAS)

    @tf.function
    def losses_of(seed):
        drawn = draw_uniform(10, VOCAB, tf.stack([seed, 1]))
        return sampled_softmax(tf.constant(HIDDEN), tf.constant(LABELS), table, bias, drawn)[0]

    logits = HIDDEN @ TABLE.T + BIAS
    own = logits[np.arange(ROWS), LABELS]
    sums = [np.exp(losses_of(seed).numpy() + own) for seed in tf.range(1000)]
    found, error = np.mean(sums, 0), np.std(sums, 0) / np.sqrt(len(sums))
    np.testing.assert_array_less(np.abs(found - np.exp(logits).sum(1)), 4 * error)


def test_draws_are_a_function_of_the_seed():
    one, same, other = (draw_uniform(100, VOCAB, tf.constant([1, s])).numpy() for s in (2, 2, 3))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any() and one.min() >= 0 and one.max() < VOCAB
