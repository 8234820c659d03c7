"""An objective of one's own is a trainer, a batch builder and settings; `fit` does the rest."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import toy_objective
from tiny_text import SENTENCES

from labse_tf.data.features import ENCODER_INPUTS, check_features
from labse_tf.training.runs.run_dir import open_or_create

NAME = "encoder/_embedding_layer/embeddings/.ATTRIBUTES/VARIABLE_VALUE"


@pytest.fixture
def train(tmp_path, tiny_config, tokenizer):
    """Trains a table for 30 steps; returns the run dir and the network."""
    sizes = dataclasses.replace(tiny_config.encoder, num_layers=0, pooling="mean")

    def run():
        tf_keras.utils.set_random_seed(3)
        settings = toy_objective.LengthConfig()
        settings.optimizer.warmup_steps = 0
        with open_or_create(tmp_path / "run", tiny_config) as run_dir:
            strategy = tf.distribute.get_strategy()
            return run_dir, toy_objective.train(
                settings, SENTENCES, sizes, tokenizer, run_dir, strategy
            )

    return run


def test_it_is_trained_logged_and_resumed(train):
    run_dir, _ = train()
    losses = {line["step"]: line["loss"] for line in run_dir.read_metrics()}
    assert list(losses) == [10, 20, 30] and losses[30] < losses[10] / 2
    names = {file.name for file in run_dir.checkpoints.glob("*.index")}
    assert names == {"ckpt-20.index", "ckpt-30.index"}
    # The same command again has nothing to do, and gives the trained weights back.
    again, network = train()
    assert {line["step"]: line["loss"] for line in again.read_metrics()} == losses
    saved = tf.train.load_checkpoint(str(run_dir.checkpoints / "ckpt-30"))
    np.testing.assert_array_equal(saved.get_tensor(NAME), network.get_embedding_table())


def test_batches_that_lack_a_feature_are_refused(train, tokenizer, monkeypatch):
    made = toy_objective.batches
    dataset = made(toy_objective.LengthConfig(), SENTENCES, tokenizer, 0)
    name = "input_mask"
    for change, message in (
        (lambda batch: batch[name], "not a dict of features"),
        (lambda batch: {**batch, name: batch[name][0]}, rf"'{name}' is TensorSpec\(shape=\(48,\)"),
        (
            lambda batch: {**batch, name: tf.cast(batch[name], tf.float32)},
            rf"'{name}' is TensorSpec.*float32.*it must be TensorSpec.*int32",
        ),
        (lambda batch: {name: batch[name]}, "no feature 'input_word_ids'"),
    ):
        with pytest.raises(TypeError, match=message):
            check_features(dataset.map(change), ENCODER_INPUTS)
    monkeypatch.setattr(toy_objective, "batches", lambda *args: made(*args).map(change))
    with pytest.raises(TypeError, match=message):
        train()
