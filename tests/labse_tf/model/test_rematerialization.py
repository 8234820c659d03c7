"""Layers that are computed again for the backward pass: the same gradients."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tiny_encoder import TINY_ENCODER, packed

from labse_tf.config import ComputeConfig, load_config
from labse_tf.errors import InputError
from labse_tf.model.dropout import dropout_generators
from labse_tf.model.encoder import build_encoder

LAYERS = 2
CONFIG = dataclasses.replace(TINY_ENCODER, num_layers=LAYERS, dropout=0.3)
INPUTS = packed([[2, 9, 9, 30, 3, 0], [2, 12, 4, 7, 21, 3]])
OTHER = packed([[2, 8, 3, 0], [2, 5, 6, 3]])


def build(*, rematerialize, **options):
    tf_keras.utils.set_random_seed(5)
    compute = ComputeConfig(
        precision=options.pop("precision", "float32"),
        xla=options.pop("xla", False),
        rematerialize=rematerialize,
    )
    config = dataclasses.replace(CONFIG, **options)
    return build_encoder(config, compute=compute, replayable=True)


def numbers_of(encoder, *, calls=1):
    """Loss and gradients of a step, and the states in which it leaves the dropout."""
    generators = dropout_generators(encoder)
    for number, generator in enumerate(generators):
        generator.state.assign([0, 7, number])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = 0.0
            for inputs in (INPUTS, OTHER)[:calls]:
                # Not linear, so that a gradient depends on what was computed.
                outputs = encoder(inputs, training=True)["sequence_output"]
                loss += tf.reduce_sum(tf.sin(3.0 * tf.cast(outputs, tf.float32)))
        return loss, tape.gradient(loss, encoder.trainable_variables)

    loss, gradients = step()
    # The pooler has none.
    gradients = [tf.convert_to_tensor(one).numpy() for one in gradients if one is not None]
    return [loss.numpy(), *gradients], [generator.state.numpy() for generator in generators]


@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({}, 1e-5),
        ({"calls": 2}, 1e-5),
        ({"precision": "bfloat16"}, 1e-5),
        ({"xla": True, "dropout": 0.0}, 1e-4),
        # XLA draws other numbers than TensorFlow, but the same ones twice.
        ({"xla": True}, 1e-4),
    ],
)
def test_gradients_are_those_of_the_layers_as_they_were(options, tolerance):
    calls = {"calls": options.get("calls", 1)}
    options = {name: value for name, value in options.items() if name != "calls"}
    expected, states = numbers_of(build(rematerialize=False, **options), **calls)
    found, found_states = numbers_of(build(rematerialize=True, **options), **calls)
    assert max(abs(gradient).max() for gradient in expected[1:]) > 1.0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=10 * tolerance)
    if options.get("dropout") != 0.0:
        assert any(state[0] for state in states)
    for one, other in zip(found_states, states, strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_layer_is_computed_twice_when_training_and_once_otherwise():
    def softmaxes(encoder, training):
        @tf.function
        def step():
            with tf.GradientTape() as tape:
                outputs = encoder(INPUTS, training=training)["sequence_output"]
            return tape.gradient(outputs, encoder.trainable_variables)

        graph = step.get_concrete_function().graph
        return sum(operation.type == "Softmax" for operation in graph.get_operations())

    assert softmaxes(build(rematerialize=False), True) == LAYERS
    encoder = build(rematerialize=True)
    assert softmaxes(encoder, True) == 2 * LAYERS
    assert softmaxes(encoder, False) == LAYERS


def test_its_checkpoints_are_those_of_any_encoder(tmp_path):
    encoder = build(rematerialize=True)
    path = tf.train.Checkpoint(encoder=encoder).save(str(tmp_path / "ckpt"))
    plain = build_encoder(CONFIG)
    checkpoint = tf.train.Checkpoint(encoder=plain)
    checkpoint.restore(path).assert_existing_objects_matched()
    assert [v.name for v in encoder.trainable_variables] == [
        v.name for v in plain.trainable_variables
    ]
    for one, other in zip(encoder.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_replayable_dropout_nothing_is_computed_again():
    """Another dropout in the second pass would give wrong gradients."""
    compute = ComputeConfig(precision="float32", rematerialize=True)
    encoder = build_encoder(CONFIG, compute=compute)
    plain = build_encoder(CONFIG)
    assert type(encoder.transformer_layers[0]) is type(plain.transformer_layers[0])


def test_another_network_is_refused(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "encoder: {network: bilstm, hidden_size: 8, pooling: max}\ncompute: {rematerialize: true}\n"
    )
    with pytest.raises(InputError, match=r"'compute.rematerialize' is True.* 'bert'"):
        load_config(str(config))
