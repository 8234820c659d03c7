"""Precision and compilation: the same training, computed otherwise."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from trainers import make_trainer

from labse_tf.config import ComputeConfig, EncoderConfig, OptimizerConfig, TrainConfig
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head
from labse_tf.training.objectives import DualEncoder, MaskedTokens
from labse_tf.training.optimizer import build_optimizer

BATCH, LENGTH, PREDICTIONS, VOCAB = 4, 16, 3, 90
CONFIG = EncoderConfig(
    vocab_size=VOCAB,
    hidden_size=16,
    num_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_positions=LENGTH,
    dropout=0.0,
)


def masked_batch():
    generator = np.random.default_rng(5)
    lengths = generator.integers(4, LENGTH + 1, size=(BATCH, 1))
    mask = (np.arange(LENGTH)[None] < lengths).astype(np.int32)
    return {
        "input_word_ids": generator.integers(5, VOCAB, (BATCH, LENGTH), np.int32) * mask,
        "input_mask": mask,
        "input_type_ids": np.zeros_like(mask),
        "masked_positions": generator.integers(0, 4, (BATCH, PREDICTIONS), np.int32),
        "masked_ids": generator.integers(5, VOCAB, (BATCH, PREDICTIONS), np.int32),
        "masked_weights": np.ones((BATCH, PREDICTIONS), np.float32),
    }


def masked_trainer(compute, *, lazy_embeddings=True, sampled_softmax=0):
    tf_keras.utils.set_random_seed(7)
    encoder = build_encoder(CONFIG, compute=compute)
    head = build_mlm_head(CONFIG, encoder, compute=compute)
    return make_trainer(
        MaskedTokens(encoder, head, samples=sampled_softmax),
        masked_batch(),
        build_optimizer(OptimizerConfig(warmup_steps=0), steps=100),
        clip_norm=1.0,
        lazy_embeddings=lazy_embeddings,
    )


def train(compute, **options):
    """Returns the means of three steps and the weights after them."""
    trainer = masked_trainer(compute, **options)
    means = {name: float(value) for name, value in trainer.train(tf.constant(3)).items()}
    assert means.pop("steps_per_second") > 0
    return means, {variable.name: variable.numpy() for variable in trainer.objective.variables}


@functools.cache
def train_plainly(sampled_softmax=0):
    """What others are compared with."""
    return train(ComputeConfig(precision="float32"), sampled_softmax=sampled_softmax)


@pytest.mark.slow
def test_xla_trains_the_same_weights():
    means, weights = train_plainly()
    compiled_means, compiled_weights = train(ComputeConfig(precision="float32", xla=True))
    assert compiled_means == pytest.approx(means, rel=1e-5)
    for name, value in weights.items():
        np.testing.assert_allclose(compiled_weights[name], value, atol=2e-5, err_msg=name)


@pytest.mark.slow
def test_xla_keeps_the_gradient_of_the_embeddings_sparse():
    encoder = build_encoder(CONFIG, compute=ComputeConfig(precision="float32", xla=True))
    inputs = {name: tf.constant(masked_batch()[name]) for name in encoder.inputs}
    with tf.GradientTape() as tape:
        pooled = encoder(inputs)["pooled_output"]
    gradient = tape.gradient(pooled, encoder.get_embedding_table())
    assert isinstance(gradient, tf.IndexedSlices)


@pytest.mark.slow
@pytest.mark.parametrize("sampled_softmax", [0, 30])
def test_the_whole_step_compiles_with_xla_as_on_a_tpu(sampled_softmax):
    trainer = masked_trainer(
        ComputeConfig(precision="float32"), lazy_embeddings=False, sampled_softmax=sampled_softmax
    )
    step = tf.function(trainer._replica_step, jit_compile=True)
    batch = {name: tf.constant(value) for name, value in masked_batch().items()}
    trainer.train_loop_begin()
    for _ in range(3):
        step(batch)
    if not sampled_softmax:
        means = {name: float(value) for name, value in trainer.train_loop_end().items()}
        del means["steps_per_second"]
        assert means == pytest.approx(train_plainly()[0], rel=1e-5)


# XLA draws other random numbers: with dropout the loss is near, not equal.
@pytest.mark.slow
@pytest.mark.parametrize("chunk_size, dropout, tolerance", [(0, 0.1, 0.1), (2, 0.0, 1e-4)])
def test_the_dual_encoders_step_compiles_with_xla_as_on_a_tpu(chunk_size, dropout, tolerance):
    batch = masked_batch()
    side = {name: batch[name] for name in ("input_word_ids", "input_mask", "input_type_ids")}
    other = {**side, "input_word_ids": side["input_word_ids"][::-1].copy()}
    keys = np.arange(2 * BATCH, dtype=np.int32).reshape(BATCH, 2)
    pairs = {"source": side, "target": other, "keys": keys}
    found = []
    for compiled in (False, True):
        tf_keras.utils.set_random_seed(7)
        config = dataclasses.replace(CONFIG, dropout=dropout)
        encoder = build_encoder(config, replayable=True)
        trainer = make_trainer(
            DualEncoder(encoder, TrainConfig(chunk_size=chunk_size)),
            pairs,
            build_optimizer(OptimizerConfig(warmup_steps=0), steps=100),
            clip_norm=1.0,
            lazy_embeddings=False,
        )
        step = tf.function(trainer._replica_step, jit_compile=compiled)
        trainer.train_loop_begin()
        for _ in range(2):
            step(tf.nest.map_structure(tf.constant, pairs))
        found.append({name: float(value) for name, value in trainer.train_loop_end().items()})
    assert found[1]["loss"] == pytest.approx(found[0]["loss"], rel=tolerance)
    if not dropout:
        norms = [means["gradient_norm"] for means in found]
        assert norms[1] == pytest.approx(norms[0], rel=tolerance)


def test_bfloat16_computes_in_16_bits_and_keeps_32():
    compute = ComputeConfig(precision="bfloat16")
    encoder = build_encoder(CONFIG, compute=compute)
    inputs = {name: tf.constant(masked_batch()[name]) for name in encoder.inputs}
    assert encoder(inputs)["pooled_output"].dtype == tf.bfloat16
    trainer = masked_trainer(compute)
    assert {variable.dtype for variable in trainer.objective.variables} == {tf.float32}
    assert tf_keras.mixed_precision.global_policy().name == "float32"


@pytest.mark.slow
@pytest.mark.parametrize("sampled_softmax", [0, 30])
def test_bfloat16_learns_what_float32_learns(sampled_softmax):
    expected, _ = train_plainly(sampled_softmax)
    found, _ = train(ComputeConfig(precision="bfloat16"), sampled_softmax=sampled_softmax)
    # 8 bits of mantissa.
    assert found["loss"] == pytest.approx(expected["loss"], rel=2e-2)
    assert found["gradient_norm"] == pytest.approx(expected["gradient_norm"], rel=5e-2)


@pytest.mark.parametrize(
    "compute",
    [ComputeConfig(precision="float32", xla=True), ComputeConfig(precision="bfloat16")],
    ids=["xla", "bf16"],
)
def test_its_checkpoints_are_those_of_any_encoder(compute, tmp_path):
    encoder = build_encoder(CONFIG, compute=compute)
    path = tf.train.Checkpoint(encoder=encoder).save(str(tmp_path / "ckpt"))
    plain = build_encoder(CONFIG)
    checkpoint = tf.train.Checkpoint(encoder=plain)
    checkpoint.restore(path).assert_existing_objects_matched().assert_consumed()
    for one, other in zip(encoder.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
