"""The learning rate over a run, and which weights decay."""

from __future__ import annotations

import pytest
import tensorflow as tf

from labse_tf.config import EncoderConfig, OptimizerConfig
from labse_tf.model.encoder import build_encoder
from labse_tf.training.optimizer import build_optimizer


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


def test_warmup_then_decay_by_hand():
    settings = OptimizerConfig(learning_rate=1.0, warmup_steps=4)
    # Up linearly to what the decay gives at step 4, then down to 0 at step 10.
    expected = [0.0, 0.15, 0.3, 0.45, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    assert rates(settings, 10) == pytest.approx(expected, abs=1e-6)


def test_without_warmup_it_starts_at_the_top():
    settings = OptimizerConfig(learning_rate=0.5, warmup_steps=0)
    assert rates(settings, 5) == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1, 0.0], abs=1e-6)


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
