"""Training goes on from an exported model, as users of one do with their own pairs."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_hub as hub
import tf_keras

from labse_tf.cli.main import main
from labse_tf.training.runs.checkpoints import load_encoder
from labse_tf.training.runs.run_dir import open_existing


def train(config_file, *settings, init, run_dir):
    overrides = [part for setting in settings for part in ("--set", setting)]
    arguments = ["train", str(config_file), "--run-dir", str(run_dir), "--init", str(init)]
    return main([*arguments, *overrides])


def fates_of(run_dir):
    lines = (run_dir / "init.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t")[0] for line in lines]


@pytest.fixture
def finetune_file(tmp_path, bitext_dir):
    """A configuration that says nothing of the encoder and of the vocabulary."""
    file = tmp_path / "finetune.yaml"
    train = f"{{bitext: [{bitext_dir}], batch_size: 8, bucket_lengths: [16, 32], steps: 0}}"
    file.write_text(f"train: {train}\n", encoding="utf-8")
    return file


def test_training_goes_on_from_an_exported_model(model_dir, trained_run, tmp_path, finetune_file):
    """Sizes and vocabulary are the model's; all its weights are taken, none starts afresh."""
    run_dir = tmp_path / "run"
    assert train(finetune_file, init=model_dir, run_dir=run_dir) == 0
    before, after = (load_encoder(open_existing(path)) for path in (trained_run, run_dir))
    assert len(before.variables) > 20
    for one, other in zip(before.variables, after.variables, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.name)
    assert fates_of(run_dir).count("taken") == len(before.variables)
    assert "fresh" not in fates_of(run_dir)
    vocabularies = [open_existing(path).vocab_file.read_bytes() for path in (trained_run, run_dir)]
    assert vocabularies[0] == vocabularies[1]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda model: (model / "model.json").write_text("{}"),
            "is not what `labse export` writes",
        ),
        (lambda model: shutil.rmtree(model / "encoder" / "assets"), "has no encoder/assets"),
        (
            lambda model: (model / "encoder" / "saved_model.pb").write_bytes(b"no"),
            "cannot be read",
        ),
    ],
)
def test_a_damaged_model_dir(model_dir, tmp_path, finetune_file, capfd, change, problem):
    model = tmp_path / "model"
    shutil.copytree(model_dir, model)
    change(model)
    assert train(finetune_file, init=model, run_dir=tmp_path / "run") == 2
    error = capfd.readouterr().err
    assert problem in error


def test_buckets_longer_than_the_model_takes(model_dir, tmp_path, finetune_file, capfd):
    settings = ["train.bucket_lengths=[16,400]"]
    assert train(finetune_file, *settings, init=model_dir, run_dir=tmp_path / "run") == 2
    assert "'train.bucket_lengths' is [16, 400]" in capfd.readouterr().err


def test_the_text_encoder_is_a_layer_that_trains(model_dir):
    """All its weights change in a Keras model, through `hub.KerasLayer`."""
    layer = hub.KerasLayer(f"{model_dir}/text_encoder", trainable=True)
    model = tf_keras.Sequential([layer, tf_keras.layers.Dense(2)])
    before = [weight.numpy() for weight in layer.trainable_variables]
    assert len(before) == 39
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.SGD(0.1), loss)
    model.fit(tf.constant(["a cat", "Katze und Haus"]), tf.constant([0, 1]), verbose=0)
    still = [
        weight.name
        for weight, value in zip(layer.trainable_variables, before, strict=True)
        if np.array_equal(weight.numpy(), value)
    ]
    # Softmax does not change with what is added to all keys alike.
    assert all("key/bias" in name for name in still)
