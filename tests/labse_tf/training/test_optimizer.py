"""The learning rate over a run, and which weights decay."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from repository import CONFIGS

from labse_tf.config import EncoderConfig, OptimizerConfig
from labse_tf.config.check import check_warmup
from labse_tf.config.files import load_config
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.training.optimizer import LazyAdamW, build_optimizer, rate_factor


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
    "section, overrides, key, steps",
    [
        ("train", ["train.steps=20", "train.optimizer.warmup_steps=20"], "train.optimizer", 20),
        (
            "pretrain",
            ["pretrain.stage_steps=[90,9]", "pretrain.optimizer.warmup_steps=10"],
            "pretrain.optimizer",
            9,
        ),
        (
            "cds",
            ["cds.trusted_steps=5", "cds.trusted_optimizer.warmup_steps=5"],
            "cds.trusted_optimizer",
            5,
        ),
        (
            "negatives",
            ["negatives.train.steps=5", "negatives.train.optimizer.warmup_steps=500"],
            "negatives.train.optimizer",
            5,
        ),
    ],
)
def test_warmup_that_leaves_nothing_to_train_is_refused(section, overrides, key, steps):
    config = load_config(CONFIGS / "tiny.yaml", overrides)
    with pytest.raises(InputError) as caught:
        check_warmup(config, section)
    assert f"'{key}.warmup_steps'" in str(caught.value)
    assert f"fewer than the {steps} training steps" in str(caught.value)
    # What a command does not train by may be anything.
    for other in {"pretrain", "train", "cds", "negatives"} - {section}:
        check_warmup(config, other)


def test_warmup_as_a_share_leaves_something_of_any_run():
    for steps in (0, 1, 2, 20):
        config = load_config(CONFIGS / "tiny.yaml", [f"train.steps={steps}"])
        assert config.train.optimizer.warmup_of(steps) == (2 if steps == 20 else 0)


def test_biases_and_layer_norms_do_not_decay():
    """One step without gradient and a decay of 0.1: only matrices shrink, by lr * decay."""
    config = EncoderConfig(
        vocab_size=20, hidden_size=8, num_layers=2, num_attention_heads=2, intermediate_size=16,
        max_positions=8,
    )  # fmt: skip
    encoder = build_encoder(config)
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


@pytest.mark.parametrize(
    "name, expected",
    [
        ("encoder/word_embeddings/embeddings:0", 20.0),
        ("encoder/pooler_transform/kernel:0", 0.5),
        ("encoder/transformer/layer_2/output/kernel:0", 3.0),
        ("encoder/transformer/layer_0/output/kernel:0", 3.0 * 0.81),
        ("encoder/position_embedding/embeddings:0", 3.0),
        ("mlm_head/transform/dense/kernel:0", 3.0),
    ],
)
def test_rates_by_part_and_depth(name, expected):
    settings = OptimizerConfig(table_rate=20, layer_rate=3, pooler_rate=0.5, depth_rate=0.9)
    assert rate_factor(settings, name, layers=3) == pytest.approx(expected)


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
