"""An encoder with `averaging_start` embeds a sentence as the average of its words, nearly."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tiny_encoder import packed

from labse_tf.config import EncoderConfig
from labse_tf.model.encoder import build_encoder, embed

CONFIG = EncoderConfig(
    vocab_size=500,
    hidden_size=64,
    num_layers=1,
    num_attention_heads=4,
    intermediate_size=128,
    max_positions=16,
    dropout=0.0,
    averaging_start=True,
)


def build(**changes):
    tf_keras.utils.set_random_seed(5)
    return build_encoder(dataclasses.replace(CONFIG, **changes))


@pytest.fixture(scope="module")
def sentences():
    """[CLS] (1), seven words, [SEP] (2)."""
    words = np.random.default_rng(1).integers(5, CONFIG.vocab_size, (40, 7))
    return np.concatenate([np.full((40, 1), 1), words, np.full((40, 1), 2)], axis=1)


def test_a_layer_adds_the_average_of_the_tokens_to_cls(sentences):
    encoder = build()
    layer = encoder.transformer_layers[0]
    states = tf.random.stateless_normal([2, 9, 64], seed=(1, 2))
    # Queries of 0 attend to all alike: then this is exact.
    attention = layer._attention_layer
    attention._query_dense.kernel.assign(tf.zeros_like(attention._query_dense.kernel))
    added = attention(states, states).numpy()
    average = states.numpy().mean(axis=1, keepdims=True)
    np.testing.assert_allclose(added, np.broadcast_to(2.0 * average, added.shape), atol=1e-4)


def test_sentences_are_apart_from_the_first_step_on(sentences):
    def similarity(encoder):
        vectors = embed(encoder, packed(sentences), training=False).numpy()
        return (vectors @ vectors.T)[~np.eye(len(vectors), dtype=bool)].mean()

    assert similarity(build(averaging_start=False)) > 0.98
    assert similarity(build()) < 0.88


def test_the_order_of_words_matters_little(sentences):
    encoder = build()
    other_order = sentences[:, [0, 7, 6, 5, 4, 3, 2, 1, 8]]
    one, other = (embed(encoder, packed(ids), training=False) for ids in (sentences, other_order))
    assert np.sum(one * other, axis=1).min() > 0.95


@pytest.mark.parametrize("layers", [1, 3])
def test_each_layer_has_its_own_rotation(layers):
    encoder = build(num_layers=layers)
    values = [
        layer._attention_layer._value_dense.kernel.numpy() for layer in encoder.transformer_layers
    ]
    for value in values:
        matrix = value.reshape(64, 64)
        np.testing.assert_allclose(matrix @ matrix.T, 2.0 * np.eye(64), atol=1e-4)
    assert len({value.tobytes() for value in values}) == layers
