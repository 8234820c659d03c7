"""The gradient cache against the gradient of the whole batch at once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tiny_encoder import TINY_ENCODER, packed

from labse_tf.losses import translation_ranking_loss
from labse_tf.model.encoder import build_encoder, dropout_generators, embed
from labse_tf.training.objectives import cached_gradients

pytestmark = pytest.mark.usefixtures("eagerly")

ROWS, LENGTH = 6, 7
SEED = 1


# Few distinct tokens, so that chunks share rows of the table.
INPUTS = packed(np.random.default_rng(2).integers(5, 20, (ROWS, LENGTH)))


def loss_of(embeddings):
    source, target = tf.split(embeddings, 2)
    return translation_ranking_loss(source, target), tf.reduce_mean(source)


def cached(encoder, chunk_rows, sparse=False):
    return cached_gradients(
        lambda chunk: embed(encoder, chunk, training=True),
        INPUTS,
        loss_of,
        encoder.trainable_variables,
        chunk_rows=chunk_rows,
        generators=dropout_generators(encoder),
        tables=[(encoder.get_embedding_table(), INPUTS["input_word_ids"])] if sparse else (),
    )


def reference(encoder, chunk_rows):
    """The chunks' embeddings on one tape, in the same order, so with the same dropout."""
    variables = encoder.trainable_variables
    with tf.GradientTape() as tape:
        rows = []
        for first in range(0, ROWS, chunk_rows):
            chunk = {name: value[first : first + chunk_rows] for name, value in INPUTS.items()}
            rows.append(embed(encoder, chunk, training=True))
        loss, accuracy = loss_of(tf.concat(rows, axis=0))
    gradients = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return loss, accuracy, [tf.convert_to_tensor(gradient) for gradient in gradients]


@pytest.mark.parametrize(
    "dropout, chunk_rows, sparse", [(0.0, ROWS, True), (0.3, 2, True), (0.3, 2, False)]
)
def test_equals_the_whole_batch(dropout, chunk_rows, sparse):
    # Some weights make gradients of 15 whose parts cancel out, which float32 gives only to 3e-5.
    tf_keras.utils.set_random_seed(SEED)
    config = dataclasses.replace(TINY_ENCODER, dropout=dropout, pooling="cls")
    encoder = build_encoder(config, replayable=True)
    generators = dropout_generators(encoder)
    # Embeddings; in a layer attention, its output and that of the layer.
    assert len(generators) == (1 + 3 if dropout else 0)
    states = [tf.identity(generator.state) for generator in generators]
    table = encoder.get_embedding_table()

    loss, accuracy, gradients = cached(encoder, chunk_rows, sparse=sparse)
    if sparse:
        place = next(i for i, v in enumerate(encoder.trainable_variables) if v is table)
        rows = gradients[place].indices.numpy()
        np.testing.assert_array_equal(rows, np.unique(INPUTS["input_word_ids"]))
    for generator, state in zip(generators, states, strict=True):
        generator.state.assign(state)
    expected_loss, expected_accuracy, expected = reference(encoder, chunk_rows)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
    np.testing.assert_allclose(accuracy, expected_accuracy, rtol=1e-4, atol=1e-6)
    assert max(abs(gradient.numpy()).max() for gradient in expected) > 0.1
    for one, other in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(one), other, rtol=1e-4, atol=1e-5)
    if dropout:  # It changes from step to step.
        assert abs(float(cached(encoder, chunk_rows)[0] - loss)) > 1e-4
