"""The optimiser against AdamW itself and NumPy: its rates, lazy updates, and Adagrad for tables."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from config_kinds import KINDS
from repository import CONFIGS
from tiny_encoder import TINY_ENCODER

from labse_tf.config import OptimizerConfig, check_warmup, load_config
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.training.distribution import sum_rows
from labse_tf.training.optimizer import AdagradTables, LazyAdamW, build_optimizer, rate_factor


def rates(settings, steps):
    """The rate that each of the steps uses."""
    optimizer = build_optimizer(settings, steps=steps)
    variable = tf.Variable([1.0])
    optimizer.build([variable])
    found = []
    for _ in range(steps + 1):
        optimizer.apply_gradients([(tf.constant([1.0]), variable)])
        found.append(float(optimizer.learning_rate))
    return found


@pytest.mark.parametrize(
    "warmup_steps, expected",
    [
        # Up by a quarter a step to the configured rate, then down by a sixth to 0 at step 10.
        (4, [0, 1 / 4, 2 / 4, 3 / 4, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0]),
        (0.4, [0, 1 / 4, 2 / 4, 3 / 4, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6, 0]),
        (9, [*(step / 9 for step in range(9)), 1, 0]),
        (1, [0, *(step / 9 for step in range(9, -1, -1))]),
        (0, [step / 10 for step in range(10, -1, -1)]),
        (0.09, [step / 10 for step in range(10, -1, -1)]),
    ],
)
def test_rates_by_hand(warmup_steps, expected):
    settings = OptimizerConfig(learning_rate=1.0, warmup_steps=warmup_steps)
    assert rates(settings, 10) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("preset", ["labse_base", "labse_large", "labse_mbert_vocab"])
def test_the_presets_reach_the_rate_of_the_paper(preset):
    """Section 3.2: 1e-3."""
    config = load_config(CONFIGS / f"{preset}.yaml")
    for optimizer, steps in (
        (config.train.optimizer, config.train.steps),
        *((config.pretrain.optimizer, steps) for steps in config.pretrain.stage_steps),
    ):
        schedule = build_optimizer(optimizer, steps=steps)._learning_rate
        warmup = optimizer.warmup_of(steps)
        assert float(schedule(warmup)) == pytest.approx(1e-3, rel=1e-6)
        halfway = (warmup + steps) // 2
        assert float(schedule(halfway)) == pytest.approx(5e-4, rel=1e-4)
        assert float(schedule(steps)) == 0.0


@pytest.mark.parametrize(
    "command, overrides, key, steps",
    [
        ("train", "train.steps=20 train.optimizer.warmup_steps=20", "train.optimizer", 20),
        (
            "pretrain",
            "pretrain.stage_steps=[90,9] pretrain.optimizer.warmup_steps=10",
            "pretrain.optimizer",
            9,
        ),
        (
            "corpus train-cds",
            "cds.trusted_steps=5 cds.trusted_optimizer.warmup_steps=5",
            "cds.trusted_optimizer",
            5,
        ),
    ],
)
def test_warmup_that_leaves_nothing_to_train_is_refused(command, overrides, key, steps):
    with pytest.raises(InputError) as caught:
        check_warmup(load_config(CONFIGS / "tiny.yaml", overrides.split(), KINDS[command]))
    assert f"'{key}.warmup_steps'" in str(caught.value)
    assert f"fewer than the {steps} training steps" in str(caught.value)


def test_warmup_that_leaves_something():
    # What a command does not train by may be anything.
    short = ["pretrain.stage_steps=[90,9]", "pretrain.optimizer.warmup_steps=10"]
    check_warmup(load_config(CONFIGS / "tiny.yaml", short))
    for steps in (0, 1, 2, 20):
        config = load_config(CONFIGS / "tiny.yaml", [f"train.steps={steps}"])
        assert config.train.optimizer.warmup_of(steps) == (2 if steps == 20 else 0)


def test_biases_and_layer_norms_do_not_decay():
    """One step without gradient and a decay of 0.1: only matrices shrink, by lr * decay."""
    encoder = build_encoder(TINY_ENCODER, num_layers=2)
    for variable in encoder.trainable_variables:
        variable.assign(tf.ones_like(variable))
    optimizer = build_optimizer(
        OptimizerConfig(learning_rate=0.5, warmup_steps=0, weight_decay=0.1), steps=10**6
    )
    optimizer.build(encoder.trainable_variables)
    zeros = [tf.zeros_like(variable) for variable in encoder.trainable_variables]
    optimizer.apply_gradients(zip(zeros, encoder.trainable_variables, strict=True))
    shrunk = kept = 0
    for variable in encoder.trainable_variables:
        value = float(tf.reduce_mean(variable))
        if "kernel" in variable.name or "embeddings:" in variable.name:
            assert value == pytest.approx(0.95, abs=1e-4), variable.name
            shrunk += 1
        else:
            assert value == 1.0, variable.name
            kept += 1
    # 3 tables, 6 matrices a layer, the pooler; biases of the same matrices and 5 layer norms.
    assert (shrunk, kept) == (3 + 2 * 6 + 1, 2 * 6 + 1 + 5 * 2)


def test_rates_by_part():
    settings = OptimizerConfig(table_rate=20, layer_rate=3, pooler_rate=0.5)
    for name, expected in (
        ("encoder/word_embeddings/embeddings:0", 20.0),
        ("encoder/pooler_transform/kernel:0", 0.5),
        ("encoder/transformer/layer_2/output/kernel:0", 3.0),
        ("encoder/position_embedding/embeddings:0", 3.0),
        ("mlm_head/transform/dense/kernel:0", 3.0),
    ):
        assert rate_factor(settings, name) == expected


@pytest.mark.parametrize("lazy", [True, False])
def test_a_factor_is_another_learning_rate(lazy):
    """Against AdamW with the rate multiplied, rows that catch up and weight decay among it."""
    table = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
    found, kernel = tf.Variable(table, name="word_embeddings"), tf.Variable(table, name="kernel")
    expected = [tf.Variable(table, name=name) for name in ("a", "b")]
    settings = {"weight_decay": 0.1, "epsilon": 1e-6}
    ours = LazyAdamW(
        0.01, steps=10, factor_of=lambda name: 5.0 if "word" in name else 1.0, **settings
    )
    theirs = [tf_keras.optimizers.AdamW(rate, **settings) for rate in (0.05, 0.01)]
    ours.build([found, kernel])
    for step in range(4):
        gradient = tf.IndexedSlices(tf.ones([1, 3]) * (step + 1), tf.constant([step % 2]), [4, 3])
        whole = tf.convert_to_tensor(gradient)
        ours.apply_gradients([(gradient if lazy else whole, found), (whole, kernel)])
        for optimizer, variable in zip(theirs, expected, strict=True):
            optimizer.apply_gradients([(whole, variable)])
    ours.catch_up_all([found])
    np.testing.assert_allclose(found, expected[0], atol=1e-5)
    np.testing.assert_allclose(kernel, expected[1], atol=1e-6)


# Lazy updates against AdamW.

SETTINGS = {"learning_rate": 0.1, "weight_decay": 0.3, "beta_1": 0.8, "epsilon": 1e-6}
TABLE = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)


def lazy_adamw(steps=100, **settings):
    return LazyAdamW(**{**SETTINGS, **settings}, steps=steps, lazy_variables="table")


def adamw(**settings):
    return tf_keras.optimizers.AdamW(**{**SETTINGS, **settings})


def run(optimizer, gradients, read=None):
    """Returns the table after the steps, before each of which the rows `read` catch up."""
    table = tf.Variable(TABLE, name="table")
    optimizer.build([table])
    for gradient in gradients:
        if read is not None:
            optimizer.catch_up(table, read)
        optimizer.apply_gradients([(gradient, table)])
    if isinstance(optimizer, LazyAdamW):
        optimizer.catch_up_all([table])
    return table.numpy()


def rows(indices, values):
    return tf.IndexedSlices(tf.constant(values, tf.float32), tf.constant(indices), [6, 3])


def dense(slices):
    return tf.convert_to_tensor(slices)


@pytest.mark.parametrize("decay", [pytest.param(0.0, marks=pytest.mark.slow), 0.1])
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
    # A dense gradient reads all rows.
    found = run(lazy_adamw(), gradients, read=tf.range(6))
    np.testing.assert_allclose(found, expected, atol=3e-6)


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


@pytest.mark.parametrize("as_given", [rows([1], [[0.0] * 3]), dense(rows([1], [[0.0] * 3]))])
def test_excluded_variables_do_not_decay(as_given):
    optimizer = lazy_adamw()
    optimizer.exclude_from_weight_decay(var_names=["table"])
    np.testing.assert_array_equal(run(optimizer, [as_given]), TABLE)


# Adagrad for tables.

FACTOR, DECAY, EPSILON = 3.0, 0.2, 1e-6


def adagrad():
    settings = {"weight_decay": DECAY, "epsilon": EPSILON}
    return AdagradTables(
        0.1, steps=10, factor_of=lambda name: FACTOR if "word" in name else 1.0, **settings
    )


def adagrad_reference(table, gradients):
    table, accumulators = table.astype(np.float64), np.zeros(len(table))
    for rows, values in gradients:
        for row, value in zip(rows, np.float64(values), strict=True):
            accumulators[row] += np.mean(value**2)
            table[row] -= 0.1 * FACTOR * value / (np.sqrt(accumulators[row]) + EPSILON)
    return table


@pytest.mark.parametrize("as_dense", [False, True])
def test_tables_by_adagrad_and_the_rest_by_adamw(as_dense):
    generator = np.random.default_rng(5)
    gradients = [
        (read, generator.normal(size=(len(read), 3)).astype(np.float32))
        for read in ([0, 3], [3], [5, 3, 1], [0])
    ]
    table, kernel = tf.Variable(TABLE, name="word_embeddings"), tf.Variable(TABLE, name="kernel")
    ours, other = adagrad(), tf.Variable(TABLE)
    ours.build([table, kernel])
    theirs = tf_keras.optimizers.AdamW(0.1, weight_decay=DECAY, epsilon=EPSILON)
    for read, values in gradients:
        gradient = rows(read, values)
        ours.catch_up(table, tf.constant(read))
        given = dense(gradient) if as_dense else gradient
        ours.apply_gradients([(given, table), (dense(gradient), kernel)])
        theirs.apply_gradients([(dense(gradient), other)])
    ours.catch_up_all([table, kernel])
    np.testing.assert_allclose(table, adagrad_reference(TABLE, gradients), atol=1e-5)
    np.testing.assert_array_equal(table.numpy()[[2, 4]], TABLE[[2, 4]])
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
        ours = adagrad()
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
        np.testing.assert_allclose(copy, adagrad_reference(start, 3 * [(rows, values)]), atol=1e-5)
