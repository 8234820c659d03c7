"""The sampled softmax against the whole one."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from labse_tf.losses import draw_uniform, sampled_softmax

VOCAB, DIM, ROWS = 50, 8, 6
RANDOM = np.random.default_rng(4)
HIDDEN = RANDOM.normal(size=(ROWS, DIM)).astype(np.float32)
TABLE = RANDOM.normal(size=(VOCAB, DIM)).astype(np.float32)
BIAS = RANDOM.normal(size=VOCAB).astype(np.float32)
LABELS = np.array([3, 7, 3, 49, 0, 7], np.int32)


def run(drawn):
    return sampled_softmax(
        tf.constant(HIDDEN), tf.constant(LABELS), tf.Variable(TABLE), tf.Variable(BIAS), drawn
    )


def test_every_token_drawn_once_is_the_whole_softmax():
    losses, hits = run(tf.range(VOCAB))
    logits = HIDDEN @ TABLE.T + BIAS
    expected = np.log(np.exp(logits).sum(1)) - logits[np.arange(ROWS), LABELS]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_array_equal(hits, logits.argmax(1) == LABELS)


def test_the_sum_over_the_vocabulary_is_estimated_without_bias():
    logits = HIDDEN @ TABLE.T + BIAS
    sums = []
    for seed in range(4000):
        losses, _ = run(draw_uniform(10, VOCAB, tf.constant([seed, 1])))
        sums.append(np.exp(losses.numpy() + logits[np.arange(ROWS), LABELS]))
    found, error = np.mean(sums, 0), np.std(sums, 0) / np.sqrt(len(sums))
    np.testing.assert_array_less(np.abs(found - np.exp(logits).sum(1)), 4 * error)


def test_only_labels_and_drawn_rows_have_a_gradient():
    table, bias = tf.Variable(TABLE), tf.Variable(BIAS)
    with tf.GradientTape() as tape:
        losses, _ = sampled_softmax(
            tf.constant(HIDDEN), tf.constant(LABELS), table, bias, tf.constant([5, 7, 20])
        )
        loss = tf.reduce_sum(losses)
    for gradient in tape.gradient(loss, [table, bias]):
        assert isinstance(gradient, tf.IndexedSlices)
        assert set(gradient.indices.numpy()) == {0, 3, 5, 7, 20, 49}


def test_draws_are_a_function_of_the_seed():
    one, same, other = (draw_uniform(100, VOCAB, tf.constant([1, s])).numpy() for s in (2, 2, 3))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any() and one.min() >= 0 and one.max() < VOCAB
