"""Texts that share a sequence have the outputs and gradients that each has by itself."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from labse_tf.config import ComputeConfig, EncoderConfig
from labse_tf.model.encoder import build_encoder

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_positions": 12,
    "dropout": 0.0,
    "initializer_range": 0.5,
}
LENGTHS = (3, 5, 2, 4)
TOGETHER = 12  # Texts 0 to 2, and 2 of padding; then text 3.


def own_rows():
    """Each text in a row of 6."""
    draws = np.random.default_rng(0)
    mask = (np.arange(6) < np.array(LENGTHS)[:, None]).astype(np.int32)
    return {
        "input_word_ids": draws.integers(1, 50, mask.shape, np.int32) * mask,
        "input_mask": mask,
        "input_type_ids": draws.integers(0, 2, mask.shape, np.int32) * mask,
    }


def joined_rows(rows):
    positions = [[*range(3), *range(5), *range(2), 0, 0], [*range(4), *[0] * 8]]
    joined = {"input_positions": np.array(positions, np.int32)}
    for name, values in rows.items():
        texts = [row[:length] for row, length in zip(values, LENGTHS, strict=True)]
        joined[name] = np.zeros((2, TOGETHER), np.int32)
        joined[name][0, :10] = np.concatenate(texts[:3])
        joined[name][1, :4] = texts[3]
    return joined


def outputs_and_gradients(encoder, inputs):
    mask = inputs["input_mask"] == 1
    with tf.GradientTape() as tape:
        states = encoder({name: tf.constant(rows) for name, rows in inputs.items()}, training=True)
        tokens = tf.boolean_mask(tf.cast(states["sequence_output"], tf.float32), mask)
        loss = tf.reduce_sum(tokens * tf.cast(tf.range(1, 15), tf.float32)[:, tf.newaxis])
    kept = [one for one in encoder.trainable_variables if "pooler" not in one.name]
    return tokens.numpy(), [tf.convert_to_tensor(one) for one in tape.gradient(loss, kept)]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("rematerialize", [False, True])
def test_equal_to_each_by_itself(pooling, rematerialize):
    compute = ComputeConfig(precision="float32", rematerialize=rematerialize)
    config = EncoderConfig(**SIZES, pooling=pooling)
    encoder = build_encoder(config, compute=compute, replayable=True)
    rows = own_rows()
    expected, expected_gradients = outputs_and_gradients(encoder, rows)
    found, found_gradients = outputs_and_gradients(encoder, joined_rows(rows))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(found_gradients) > 20
    for one, other in zip(found_gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


def test_without_positions_they_see_each_other():
    encoder = build_encoder(EncoderConfig(**SIZES))
    joined = joined_rows(own_rows())
    apart, _ = outputs_and_gradients(encoder, joined)
    del joined["input_positions"]
    mixed, _ = outputs_and_gradients(encoder, joined)
    assert np.abs(apart - mixed).max() > 0.1
