"""One step of pre-training against the gradient of the loss, written out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tiny_encoder import TINY_ENCODER, packed
from trainers import make_trainer

from labse_tf.data.features import ENCODER_INPUTS
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head, build_slots, trained_variables
from labse_tf.training.objectives import MaskedTokens

pytestmark = pytest.mark.usefixtures("eagerly")

RATE = 0.5
CONFIG = dataclasses.replace(TINY_ENCODER, num_layers=2, max_positions=8, pooling="cls")


@pytest.fixture
def batch():
    return {
        **packed([[2, 9, 9, 30, 3, 0], [2, 12, 4, 7, 21, 3]]),
        "masked_positions": tf.constant([[1, 0], [2, 4]]),
        "masked_ids": tf.constant([[9, 0], [33, 21]]),
        "masked_weights": tf.constant([[1.0, 0.0], [1.0, 1.0]]),
    }


def model():
    tf_keras.utils.set_random_seed(3)
    encoder = build_encoder(CONFIG)
    return encoder, build_mlm_head(CONFIG, encoder)


def loss_of(encoder, head, batch):
    """The mean of -log p over the three masked tokens, one by one."""
    sequence = encoder({name: batch[name] for name in encoder.inputs})["sequence_output"]
    losses = []
    for row, column in ((0, 0), (1, 0), (1, 1)):
        position = batch["masked_positions"][row, column]
        hidden = head.layer_norm(head.dense(sequence[row : row + 1, position]))
        logits = tf.linalg.matvec(encoder.get_embedding_table(), hidden[0]) + head.bias
        losses.append(-tf.nn.log_softmax(logits)[batch["masked_ids"][row, column]])
    return tf.add_n(losses) / 3


def test_a_step_moves_each_variable_by_its_gradient_once(batch):
    encoder, head = model()
    variables = trained_variables(encoder, head)
    assert len({variable.name for variable in variables}) == len(variables)
    with tf.GradientTape() as tape:
        loss = loss_of(encoder, head, batch)
    gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
    gradients = [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]
    before = [variable.numpy() for variable in variables]
    trainer = make_trainer(MaskedTokens(encoder, head), batch, tf_keras.optimizers.SGD(RATE))
    means = trainer.train(tf.constant(1))
    assert float(means["loss"]) == pytest.approx(float(loss), rel=1e-5)
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    assert float(means["gradient_norm"]) == pytest.approx(norm, rel=1e-5)
    for variable, old, gradient in zip(variables, before, gradients, strict=True):
        expected = old - RATE * gradient
        np.testing.assert_allclose(variable, expected, atol=1e-5, err_msg=variable.name)


def step(batch, *, slots, **options):
    """Loss and accuracy of a step, and what it adds to each variable: by SGD, -RATE * gradient."""
    config = dataclasses.replace(CONFIG, max_positions=16)
    tf_keras.utils.set_random_seed(3)
    encoder = build_encoder(config)
    parts = (encoder, build_mlm_head(config, encoder), build_slots(slots, config))
    objective = MaskedTokens(*parts, **options)
    trainer = make_trainer(objective, batch, tf_keras.optimizers.SGD(RATE))
    before = [variable.numpy() for variable in objective.variables]
    means = trainer.train(tf.constant(1))
    updates = [v.numpy() - old for v, old in zip(objective.variables, before, strict=True)]
    return [float(means["loss"]), float(means["accuracy"]), *updates]


def test_chunks_give_what_the_whole_batch_gives(batch):
    batch["neighbour"] = {name: batch[name][::-1] for name in ENCODER_INPUTS}
    whole, chunked = step(batch, slots=3), step(batch, slots=3, chunk_size=1)
    assert max(abs(update).max() for update in whole[2:]) > 0.05
    for expected, found in zip(whole, chunked, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_chunks_with_a_sampled_softmax_are_batches_of_their_own(batch):
    """Each has its own labels in the softmax; of the three predictions, the second row has two."""
    rows = [{name: tensor[row : row + 1] for name, tensor in batch.items()} for row in (0, 1)]
    options = {"slots": 0, "samples": 20}
    parts = zip(*(step(row, **options) for row in rows), strict=True)
    for found, (one, two) in zip(step(batch, chunk_size=1, **options), parts, strict=True):
        np.testing.assert_allclose(found, (one + 2 * two) / 3, rtol=1e-5, atol=1e-6)
