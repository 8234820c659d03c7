"""LASER's encoder, against the equations of the LSTM and the published numbers of weights."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from numpy_lstm import lstm
from tiny_encoder import packed

from labse_tf.config import BILSTM, EncoderConfig
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder, dropout_generators

TINY = EncoderConfig(
    network=BILSTM,
    vocab_size=30,
    embedding_size=3,
    hidden_size=8,
    num_layers=2,
    dropout=0.0,
    initializer_range=0.8,
    pooling="max",
)
ROWS = [[5, 6, 7, 8, 9, 10], [11, 12, 0, 0, 0, 0], [13, 0, 0, 0, 0, 0]]


def reference(encoder, ids):
    """The vector of one text without padding, in float64."""
    weights = [variable.numpy().astype(np.float64) for variable in encoder.variables]
    hidden, (forwards, backwards) = weights[0][ids], np.split(np.arange(1, len(weights)), 2)
    for one, other in zip(forwards[::3], backwards[::3], strict=True):
        forward, backward = weights[one : one + 3], weights[other : other + 3]
        directions = zip((forward, backward), (1, -1), strict=True)
        hidden = np.concatenate(
            [
                lstm(hidden[::way] @ kernel + bias, recurrent)[::way]
                for (kernel, recurrent, bias), way in directions
            ],
            axis=1,
        )
    return hidden.max(axis=0)


def test_the_vectors_are_those_of_the_equations_whatever_the_padding():
    encoder = build_encoder(TINY)
    found = encoder(packed(ROWS))
    expected = np.stack([reference(encoder, [i for i in row if i]) for row in ROWS])
    np.testing.assert_allclose(found["pooled_output"], expected, atol=1e-6)
    # Alone, a text has no padding.
    alone = encoder(packed([ROWS[1][:2]]))["pooled_output"][0]
    np.testing.assert_allclose(alone, expected[1], atol=1e-6)
    assert found["sequence_output"].shape == (3, 6, 8)
    assert [one.shape for one in found["encoder_outputs"]] == [(3, 6, 8)] * 2


def test_two_steps_of_one_unit_by_hand():
    """Kernels 0, biases 1: c = s tanh 1 + s c, h = s tanh c, with s = sigmoid 1."""
    encoder = build_encoder(dataclasses.replace(TINY, hidden_size=2, num_layers=1))
    for variable in encoder.variables:
        is_bias = len(variable.shape) == 1
        variable.assign(tf.fill(variable.shape, float(is_bias)))
    outputs = encoder(packed([[5, 6, 0]]))
    forward, backward = outputs["sequence_output"][0, :2].numpy().T
    np.testing.assert_allclose(forward, [0.36961, 0.54535], atol=1e-5)
    np.testing.assert_allclose(backward, [0.54535, 0.36961], atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], [[0.54535] * 2], atol=1e-5)


def test_padding_does_not_count_as_0():
    """Where each output is negative, so is the maximum: o = sigmoid(0), c saturates at -1."""
    encoder = build_encoder(dataclasses.replace(TINY, hidden_size=2, num_layers=1))
    for variable in encoder.variables:
        variable.assign(tf.zeros(variable.shape))
        if len(variable.shape) == 1:
            # Input gate open, forget gate closed, candidate -1, output gate open.
            variable.assign([50.0, -50.0, -50.0, 50.0])
    pooled = encoder(packed([[5, 6, 0, 0]]))["pooled_output"].numpy()
    np.testing.assert_allclose(pooled, -np.tanh(1) * np.ones((1, 2)), atol=1e-5)


def test_a_row_of_padding_is_0():
    """It would be the least float32, which makes infinities and NaN of what follows."""
    encoder = build_encoder(TINY)
    pooled = encoder(packed([[5, 6, 7], [0, 0, 0]]))["pooled_output"].numpy()
    assert pooled[0].any() and not pooled[1].any()
    alone = encoder(packed([[5, 6, 7]]))["pooled_output"]
    np.testing.assert_allclose(pooled[:1], alone, atol=1e-6)


def test_the_number_of_weights_is_lasers():
    """Section 3's sizes: 28,614,656 with two biases a gate, of which one is the sum (PyTorch)."""
    sizes = dataclasses.replace(TINY, embedding_size=320, hidden_size=1024, num_layers=5)
    encoder = build_encoder(sizes)
    table = encoder.get_embedding_table().shape.num_elements()
    biases = 5 * 2 * 4 * 512
    assert encoder.count_params() - table + biases == 28_614_656


def test_no_two_weights_begin_alike():
    drawn = [variable.numpy().ravel()[:3] for variable in build_encoder(TINY).variables]
    assert len(np.unique(np.round(drawn, 5), axis=0)) == len(drawn)
    assert np.abs(drawn).max() <= TINY.initializer_range


def test_dropout_is_between_the_layers_alone():
    for layers, changes in ((1, False), (2, True)):
        config = dataclasses.replace(TINY, num_layers=layers, dropout=0.5)
        encoder = build_encoder(config, replayable=True)
        inputs = packed(ROWS)
        trained = encoder(inputs, training=True)["pooled_output"].numpy()
        still = encoder(inputs, training=False)["pooled_output"].numpy()
        assert (np.abs(trained - still).max() > 0.01) == changes
        assert len(dropout_generators(encoder)) == layers - 1


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"num_layers": 0}, "'encoder.num_layers' is 0"),
        ({"hidden_size": 7}, "'encoder.hidden_size' is 7.*even"),
        ({"averaging_start": True}, "'encoder.averaging_start' is True"),
        ({"network": "bert", "embedding_size": 0}, "'encoder.pooling' is 'max'"),
        ({"network": "bert", "pooling": "cls"}, "'encoder.embedding_size' is 3"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes, message):
    from labse_tf.config import Config, changed

    changes = {f"encoder.{key}": value for key, value in changes.items()}
    with pytest.raises(InputError, match=message):
        changed(Config(encoder=TINY), changes)
