"""The lazy optimiser against AdamW itself."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from labse_tf.training.optimizer import LazyAdamW, sum_rows

SETTINGS = {"learning_rate": 0.1, "weight_decay": 0.3, "beta_1": 0.8, "epsilon": 1e-6}
TABLE = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)


def lazy_adamw(steps=100, **settings):
    return LazyAdamW(**{**SETTINGS, **settings}, steps=steps, lazy_variables="table")


def adamw(**settings):
    return tf_keras.optimizers.AdamW(**{**SETTINGS, **settings})


def run(optimizer, gradients):
    """Returns the table after the steps, the first of which builds the optimiser."""
    table = tf.Variable(TABLE, name="table")
    optimizer.build([table])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, table)])
    if isinstance(optimizer, LazyAdamW):
        optimizer.catch_up_all([table])
    return table.numpy()


def rows(indices, values):
    return tf.IndexedSlices(tf.constant(values, tf.float32), tf.constant(indices), [6, 3])


def dense(slices):
    return tf.convert_to_tensor(slices)


def test_a_step_updates_its_rows_and_no_other():
    table = tf.Variable(TABLE, name="table")
    optimizer = lazy_adamw()
    optimizer.build([table])
    optimizer.apply_gradients([(rows([4, 1], [[1, -2, 3], [0.5, 0, -1]]), table)])
    np.testing.assert_array_equal(table.numpy()[[0, 2, 3, 5]], TABLE[[0, 2, 3, 5]])
    # By hand: m / sqrt(v), bias-corrected, is the sign; the row decays before.
    decayed = TABLE[4] * (1 - 0.1 * 0.3) - 0.1 * np.sign([1, -2, 3])
    np.testing.assert_allclose(table.numpy()[4], decayed, atol=1e-5)


def test_a_row_makes_up_for_three_steps_by_hand():
    table = tf.Variable(TABLE, name="table")
    optimizer = lazy_adamw()
    optimizer.build([table])
    first, other = rows([2], [[1.0, 1.0, 1.0]]), rows([3], [[1.0, 1.0, 1.0]])
    for gradient in (first, other, other, other):
        optimizer.apply_gradients([(gradient, table)])
    rested = table.numpy()[2]
    optimizer.catch_up(table, tf.constant([2]))
    m, v, weights = 0.2, 0.001, TABLE[2].astype(np.float64)
    for step in range(1, 5):
        corrected = 0.1 * np.sqrt(1 - 0.999**step) / (1 - 0.8**step)
        weights = weights * (1 - 0.1 * 0.3) - corrected * m / (np.sqrt(v) + 1e-6)
        if step == 1:
            np.testing.assert_allclose(rested, weights, atol=1e-5)
        m, v = 0.8 * m, 0.999 * v
    np.testing.assert_allclose(table.numpy()[2], weights, atol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_sparse_steps_are_adamws_where_they_are_read_and_at_the_end(decay):
    """The gradient depends on the weights, so that a stale row would lead elsewhere."""
    generator = np.random.default_rng(0)
    start, target = (generator.normal(size=(30, 4)).astype(np.float32) for _ in range(2))
    steps = 120

    def settings():
        schedule = tf_keras.optimizers.schedules.PolynomialDecay(0.05, steps, 0.0)
        return {"learning_rate": schedule, "weight_decay": decay, "beta_1": 0.9}

    lazy, reference = (tf.Variable(start, name="table") for _ in range(2))
    optimizers = lazy_adamw(steps, **settings()), adamw(**settings())
    for optimizer, table in zip(optimizers, (lazy, reference), strict=True):
        optimizer.build([table])
    for _ in range(steps):
        # Row 1 at each step, others rarely.
        read = tf.constant(np.unique([1, *generator.integers(0, 30, 2)]))
        optimizers[0].catch_up(lazy, read)
        np.testing.assert_allclose(tf.gather(lazy, read), tf.gather(reference, read), atol=5e-6)
        for optimizer, table in zip(optimizers, (lazy, reference), strict=True):
            values = tf.gather(table, read) - tf.gather(target, read)
            gradient = tf.IndexedSlices(values, read, [30, 4])
            gradient = gradient if table is lazy else dense(gradient)
            optimizer.apply_gradients([(gradient, table)])
    optimizers[0].catch_up_all([lazy])
    np.testing.assert_allclose(lazy, reference, atol=5e-6)
    assert np.abs(reference - start).max() > 0.5


def test_dense_and_sparse_gradients_may_take_turns():
    generator = np.random.default_rng(4)
    gradients = [
        rows([1], generator.normal(size=(1, 3))),
        tf.constant(generator.normal(size=(6, 3)), tf.float32),
        rows([1, 5], generator.normal(size=(2, 3))),
    ]
    expected = run(adamw(), [dense(gradient) for gradient in gradients])
    table = tf.Variable(TABLE, name="table")
    optimizer = lazy_adamw()
    optimizer.build([table])
    for gradient in gradients:
        # A dense gradient reads all rows.
        optimizer.catch_up(table, tf.range(6))
        optimizer.apply_gradients([(gradient, table)])
    optimizer.catch_up_all([table])
    np.testing.assert_allclose(table, expected, atol=3e-6)


def test_more_steps_than_were_planned():
    gradient = rows([1], [[1.0, 1.0, 1.0]])
    assert np.isfinite(run(lazy_adamw(steps=2), [gradient] * 5)).all()


def test_a_row_named_twice_is_summed():
    twice = rows([1, 4, 1], [[1, 2, 3], [4, 5, 6], [1, 1, 1]])
    once = rows([1, 4], [[2, 3, 4], [4, 5, 6]])
    summed = sum_rows(twice)
    assert summed.indices.numpy().tolist() == [1, 4]
    np.testing.assert_array_equal(summed.values, once.values)
    np.testing.assert_allclose(run(lazy_adamw(), [twice]), run(lazy_adamw(), [once]), atol=1e-6)


def test_dense_gradients_and_exclusions_are_adamws():
    gradient = tf.constant(np.random.default_rng(3).normal(size=(6, 3)), tf.float32)
    found = run(lazy_adamw(), [gradient, gradient])
    expected = run(adamw(), [gradient, gradient])
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
    optimizer = lazy_adamw()
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    optimizer.build([table])
    gradient = rows([1], [[0.0, 0.0, 0.0]])
    optimizer.apply_gradients([(gradient if lazy else dense(gradient), table)])
    np.testing.assert_array_equal(table.numpy(), TABLE)
