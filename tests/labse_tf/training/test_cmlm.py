"""Pre-training by CMLM: what it learns from neighbours, and the runs of `labse pretrain`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from runs import embedder_of, labse_run, lines
from tiny_text import SENTENCES
from trainers import make_trainer

import labse_tf
from labse_tf.cli.main import main
from labse_tf.config import EncoderConfig
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head, build_slots
from labse_tf.training.objectives import MaskedTokens

TOPICS, FIRST_TOPIC, MASK = 8, 10, 4
TOY = EncoderConfig(
    vocab_size=24,
    hidden_size=16,
    num_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_positions=32,
    dropout=0.0,
    initializer_range=0.1,
    pooling="mean",
)


def topic_batches(*, shuffled):
    """The neighbour holds one of 8 topics; the masked token is the same topic, or any other."""

    def make(index):
        seeds = tf.random.split(tf.stack([7, index]), 2)
        topics = tf.random.stateless_uniform([32], seeds[0], 0, TOPICS, tf.int32) + FIRST_TOPIC
        others = tf.random.stateless_uniform([32], seeds[1], 0, TOPICS, tf.int32) + FIRST_TOPIC
        ends = [tf.fill([32], 2), tf.fill([32], 3)]
        near = tf.stack([ends[0], others if shuffled else topics, ends[1]], axis=1)
        hidden = tf.stack([ends[0], tf.fill([32], MASK), ends[1]], axis=1)
        return {
            **_packed(hidden),
            "neighbour": _packed(near),
            "masked_positions": tf.ones([32, 1], tf.int32),
            "masked_ids": topics[:, tf.newaxis],
            "masked_weights": tf.ones([32, 1]),
        }

    return tf.data.Dataset.range(10**6, output_type=tf.int32).map(make)


def _packed(ids):
    ones = tf.ones_like(ids)
    return {"input_word_ids": ids, "input_mask": ones, "input_type_ids": 0 * ones}


@pytest.mark.parametrize(
    "count, shuffled",
    [(15, False)]
    + [pytest.param(*one, marks=pytest.mark.slow) for one in ((15, True), (1, False), (1, True))],
)
def test_a_topic_of_the_neighbour_is_learned_and_chance_if_shuffled(count, shuffled):
    tf_keras.utils.set_random_seed(1)
    encoder = build_encoder(TOY)
    objective = MaskedTokens(encoder, build_mlm_head(TOY, encoder), build_slots(count, TOY))
    batches = topic_batches(shuffled=shuffled)
    trainer = make_trainer(objective, batches, tf_keras.optimizers.Adam(3e-3))
    trainer.train(tf.constant(400))
    loss = float(trainer.train(tf.constant(20))["loss"])
    assert abs(loss - math.log(TOPICS)) < 0.15 if shuffled else loss < 0.02


@pytest.mark.slow
def test_without_slots_it_is_mlm_bit_by_bit():
    def without_neighbours(batch):
        return {name: value for name, value in batch.items() if name != "neighbour"}

    weights = []
    for batches in (
        topic_batches(shuffled=False),
        topic_batches(shuffled=True),
        topic_batches(shuffled=False).map(without_neighbours),
    ):
        tf_keras.utils.set_random_seed(1)
        encoder = build_encoder(TOY)
        objective = MaskedTokens(encoder, build_mlm_head(TOY, encoder), build_slots(0, TOY))
        trainer = make_trainer(objective, batches, tf_keras.optimizers.Adam(3e-3))
        trainer.train(tf.constant(5))
        weights.append([variable.numpy() for variable in objective.variables])
    for cmlm, shuffled, mlm in zip(*weights, strict=True):
        np.testing.assert_array_equal(cmlm, mlm)
        np.testing.assert_array_equal(shuffled, mlm)


@pytest.fixture(scope="module")
def pretrain(config_file, neighbours_dir):
    def start(run_dir, *more):
        sets = {
            "objective": "cmlm",
            "neighbours": f"[{neighbours_dir}]",
            "held_out": f"[{neighbours_dir}]",
            "held_out_size": 4,
            "slots": 3,
            "sequence_length": 24,
            "stage_steps": "[2]",
        }
        sets = [
            "encoder.pooling=mean",
            "encoder.num_layers=1",
            *(f"pretrain.{key}={one}" for key, one in sets.items()),
        ]
        return labse_run("pretrain", config_file, run_dir, *sets, *more)

    return start


@pytest.fixture(scope="module")
def run(tmp_path_factory, pretrain):
    path = tmp_path_factory.mktemp("cmlm") / "run"
    assert pretrain(path) == 0
    return path


def test_a_run_writes_the_losses_with_true_and_with_shuffled_neighbours(run):
    held_out = [line["held_out"] for line in lines(run, "held_out")]
    assert held_out
    for found in held_out:
        assert set(found) == {"cmlm", "cmlm_shuffled"}
        assert set(found["cmlm"]["by_language"]) == {"en", "ru", "th"}
        assert np.isfinite(found["cmlm"]["loss"])
        assert found["cmlm"]["tokens"] == found["cmlm_shuffled"]["tokens"] > 0


@pytest.mark.slow
def test_the_exported_vector_is_that_of_training(run, tmp_path):
    assert main(["export", str(run), "--no-verify", "--out", str(tmp_path / "model")]) == 0
    found = labse_tf.load(tmp_path / "model").encode(SENTENCES)
    np.testing.assert_allclose(found, embedder_of(run).encode(SENTENCES), atol=1e-5)


@pytest.mark.slow
def test_a_run_without_slots_is_mlm_of_single_sentences(pretrain, tmp_path):
    assert pretrain(tmp_path / "run", "pretrain.slots=0", "pretrain.held_out=[]") == 0


@pytest.mark.slow
def test_text_without_neighbours_is_refused(pretrain, tmp_path, capfd):
    (tmp_path / "it.txt").write_text("gatto\n\ncane\n", "utf-8")
    sets = (f"pretrain.neighbours=[{tmp_path / 'it.txt'}]", "pretrain.held_out=[]")
    assert pretrain(tmp_path / "run", *sets) != 0
    assert "the corpora hold no records" in capfd.readouterr().err


def test_slots_need_positions(pretrain, tmp_path, capfd):
    assert pretrain(tmp_path / "run", "pretrain.slots=110") != 0
    assert "encoder.max_positions less pretrain.slots" in capfd.readouterr().err
