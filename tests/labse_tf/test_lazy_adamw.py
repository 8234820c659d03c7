"""The lazy optimiser against AdamW itself, on the rows that it touches."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from labse_tf.training.lazy_adamw import LazyAdamW, sum_rows

SETTINGS = {"learning_rate": 0.1, "weight_decay": 0.3, "beta_1": 0.8, "epsilon": 1e-6}
TABLE = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)


def run(optimizer, gradients):
    """Returns the table after the steps, the first of which builds the optimiser."""
    table = tf.Variable(TABLE)
    optimizer.build([table])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, table)])
    return table.numpy()


def rows(indices, values):
    return tf.IndexedSlices(tf.constant(values, tf.float32), tf.constant(indices), [6, 3])


def dense(slices):
    return tf.convert_to_tensor(slices)


def test_a_first_step_equals_adamw_on_its_rows_and_leaves_the_others():
    gradient = rows([4, 1], [[1, -2, 3], [0.5, 0, -1]])
    lazy = run(LazyAdamW(**SETTINGS), [gradient])
    reference = run(tf_keras.optimizers.AdamW(**SETTINGS), [dense(gradient)])
    np.testing.assert_allclose(lazy[[4, 1]], reference[[4, 1]], atol=1e-6)
    np.testing.assert_array_equal(lazy[[0, 2, 3, 5]], TABLE[[0, 2, 3, 5]])
    # By hand: m / sqrt(v), bias-corrected, is the sign; AdamW's other rows decay.
    decayed = TABLE[4] * (1 - 0.1 * 0.3) - 0.1 * np.sign([1, -2, 3])
    np.testing.assert_allclose(lazy[4], decayed, atol=1e-5)
    np.testing.assert_allclose(reference[0], TABLE[0] * (1 - 0.1 * 0.3), atol=1e-6)


def test_rows_that_every_step_touches_equal_adamw_throughout():
    generator = np.random.default_rng(2)
    others = [[0], [5], [2], [0], [3]]
    steps = [rows([1, 4, *other], generator.normal(size=(2 + len(other), 3))) for other in others]
    lazy = run(LazyAdamW(**SETTINGS), steps)
    reference = run(tf_keras.optimizers.AdamW(**SETTINGS), [dense(step) for step in steps])
    np.testing.assert_allclose(lazy[[1, 4]], reference[[1, 4]], atol=1e-6)


def test_the_moments_of_a_resting_row_rest():
    first, other = rows([2], [[1.0, 1.0, 1.0]]), rows([3], [[1.0, 1.0, 1.0]])
    rested = run(LazyAdamW(**SETTINGS), [first, other, other, first])
    # What the row sees: two steps, of which the second is the optimiser's fourth.
    m = v = 0.0
    weights = TABLE[2].astype(np.float64)
    for step in (1, 4):
        m, v = 0.8 * m + 0.2, 0.999 * v + 0.001
        corrected = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.8**step)
        weights = weights * (1 - 0.1 * 0.3) - corrected * m / (np.sqrt(v) + 1e-6)
    np.testing.assert_allclose(rested[2], weights, atol=1e-5)


def test_a_row_named_twice_is_summed():
    twice = rows([1, 4, 1], [[1, 2, 3], [4, 5, 6], [1, 1, 1]])
    once = rows([1, 4], [[2, 3, 4], [4, 5, 6]])
    summed = sum_rows(twice)
    assert summed.indices.numpy().tolist() == [1, 4]
    np.testing.assert_array_equal(summed.values, once.values)
    np.testing.assert_allclose(
        run(LazyAdamW(**SETTINGS), [twice]), run(LazyAdamW(**SETTINGS), [once]), atol=1e-6
    )


def test_dense_gradients_and_exclusions_are_adamws():
    gradient = tf.constant(np.random.default_rng(3).normal(size=(6, 3)), tf.float32)
    found = run(LazyAdamW(**SETTINGS), [gradient, gradient])
    expected = run(tf_keras.optimizers.AdamW(**SETTINGS), [gradient, gradient])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    # AdamW in double precision (Loshchilov and Hutter 2019, algorithm 2), of which we lose less.
    m = v = 0.0
    weights, g = TABLE.astype(np.float64), gradient.numpy().astype(np.float64)
    for step in (1, 2):
        m, v = 0.8 * m + 0.2 * g, 0.999 * v + 0.001 * g**2
        corrected = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.8**step)
        weights = weights * (1 - 0.1 * 0.3) - corrected * m / (np.sqrt(v) + 1e-6)
    np.testing.assert_allclose(found, weights, atol=3e-7)


@pytest.mark.parametrize("lazy", [True, False])
def test_excluded_variables_do_not_decay(lazy):
    table = tf.Variable(TABLE, name="bias_table")
    optimizer = LazyAdamW(**SETTINGS)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    optimizer.build([table])
    gradient = rows([1], [[0.0, 0.0, 0.0]])
    optimizer.apply_gradients([(gradient if lazy else dense(gradient), table)])
    np.testing.assert_array_equal(table.numpy(), TABLE)
