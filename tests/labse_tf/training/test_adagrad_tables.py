"""AdamW with Adagrad for tables: against a NumPy reference, sparse and dense, over replicas."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from labse_tf.config import OptimizerConfig
from labse_tf.training.optimizer import AdagradTables, build_optimizer

RATE, FACTOR, DECAY, EPSILON = 0.1, 3.0, 0.2, 1e-6


def optimizer():
    return AdagradTables(
        RATE,
        steps=10,
        factor_of=lambda name: FACTOR if "word" in name else 1.0,
        weight_decay=DECAY,
        epsilon=EPSILON,
    )


def reference(table, gradients):
    table, accumulators = table.astype(np.float64), np.zeros(len(table))
    for rows, values in gradients:
        for row, value in zip(rows, np.float64(values), strict=True):
            accumulators[row] += np.mean(value**2)
            table[row] -= RATE * FACTOR * value / (np.sqrt(accumulators[row]) + EPSILON)
    return table


@pytest.mark.parametrize("dense", [False, True])
def test_tables_by_adagrad_and_the_rest_by_adamw(dense):
    generator = np.random.default_rng(5)
    start = generator.normal(size=(6, 4)).astype(np.float32)
    gradients = [
        (rows, generator.normal(size=(len(rows), 4)).astype(np.float32))
        for rows in ([0, 3], [3], [5, 3, 1], [0])
    ]
    table, kernel = tf.Variable(start, name="word_embeddings"), tf.Variable(start, name="kernel")
    ours = optimizer()
    ours.build([table, kernel])
    other = tf.Variable(start)
    adamw = tf_keras.optimizers.AdamW(RATE, weight_decay=DECAY, epsilon=EPSILON)
    for rows, values in gradients:
        gradient = tf.IndexedSlices(tf.constant(values), tf.constant(rows), [6, 4])
        whole = tf.convert_to_tensor(gradient)
        ours.catch_up(table, tf.constant(rows))
        ours.apply_gradients([(whole if dense else gradient, table), (whole, kernel)])
        adamw.apply_gradients([(whole, other)])
    ours.catch_up_all([table, kernel])
    np.testing.assert_allclose(table, reference(start, gradients), atol=1e-5)
    np.testing.assert_array_equal(table.numpy()[[2, 4]], start[[2, 4]])
    np.testing.assert_allclose(kernel, other, atol=1e-5)


def test_a_table_has_one_number_a_row():
    table = tf.Variable(tf.ones([7, 5]), name="encoder/word_embeddings/embeddings")
    made = build_optimizer(OptimizerConfig(table_update="adagrad"), steps=3)
    assert isinstance(made, AdagradTables)
    made.build([table])
    sizes = sorted(int(tf.size(one)) for one in made.variables if "embeddings" in one.name)
    assert sizes == [0, 7]


def test_replicas_update_their_copies_alike():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    start = np.random.default_rng(6).normal(size=(5, 3)).astype(np.float32)
    values, rows = np.ones((2, 3), np.float32), [1, 4]
    with strategy.scope():
        table = tf.Variable(start, name="word_embeddings")
        ours = optimizer()
        ours.build([table])

    @tf.function
    def step():
        def on_replica():
            gradient = tf.IndexedSlices(tf.constant(values), tf.constant(rows), [5, 3])
            ours.apply_gradients([(gradient, table)], skip_gradients_aggregation=True)

        strategy.run(on_replica)

    for _ in range(3):
        step()
    for copy in strategy.experimental_local_results(table):
        np.testing.assert_allclose(copy, reference(start, 3 * [(rows, values)]), atol=1e-5)
