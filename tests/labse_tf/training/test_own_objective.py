"""An objective of one's own is a trainer, a batch builder and settings; `fit` does the rest."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import toy_objective
from tiny_text import SENTENCES

from labse_tf.training.runs.run_dir import open_or_create


def steps_and_losses(run_dir):
    return {line["step"]: line["loss"] for line in run_dir.read_metrics()}


@pytest.mark.slow
def test_it_is_trained_logged_and_resumed(tmp_path, tiny_config, tokenizer):
    sizes = dataclasses.replace(tiny_config.encoder, num_layers=1)

    def train(folder, steps):
        tf_keras.utils.set_random_seed(3)
        settings = toy_objective.LengthConfig(steps=steps)
        # A constant rate: the steps that are left do not change those before.
        settings.optimizer.warmup_steps = 0
        with open_or_create(tmp_path / folder, tiny_config) as run_dir:
            strategy = tf.distribute.get_strategy()
            network = toy_objective.train(settings, SENTENCES, sizes, tokenizer, run_dir, strategy)
        return run_dir, network

    run_dir, _ = train("run", 30)
    losses = steps_and_losses(run_dir)
    assert list(losses) == [10, 20, 30]
    assert losses[30] < losses[10] / 2
    assert {file.name for file in run_dir.checkpoints.glob("*.index")} == {
        "ckpt-20.index", "ckpt-30.index",
    }  # fmt: skip
    # The same command again has nothing to do, and gives the trained weights back.
    again, network = train("run", 30)
    assert steps_and_losses(again) == losses
    saved = tf.train.load_checkpoint(str(run_dir.checkpoints / "ckpt-30"))
    name = "encoder/_embedding_layer/embeddings/.ATTRIBUTES/VARIABLE_VALUE"
    np.testing.assert_array_equal(saved.get_tensor(name), network.get_embedding_table())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda batch: {"input_mask": batch["input_mask"]}, "no feature 'input_word_ids'"),
        (lambda batch: {**batch, "input_mask": tf.cast(batch["input_mask"], tf.float32)},
         r"'input_mask' is TensorSpec.*float32.*it must be TensorSpec.*int32"),
        (lambda batch: {**batch, "input_type_ids": batch["input_type_ids"][0]},
         r"'input_type_ids' is TensorSpec\(shape=\(48,\)"),
        (lambda batch: batch["input_mask"], "not a dict of features"),
    ],
)  # fmt: skip
def test_batches_that_lack_a_feature_are_refused(
    tmp_path, tiny_config, tokenizer, monkeypatch, change, message
):
    made = toy_objective.batches
    monkeypatch.setattr(toy_objective, "batches", lambda *args: made(*args).map(change))
    sizes = dataclasses.replace(tiny_config.encoder, num_layers=1)
    settings = toy_objective.LengthConfig()
    with (
        open_or_create(tmp_path / "run", tiny_config) as run_dir,
        pytest.raises(TypeError, match=message),
    ):
        strategy = tf.distribute.get_strategy()
        toy_objective.train(settings, SENTENCES, sizes, tokenizer, run_dir, strategy)
