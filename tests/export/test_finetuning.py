"""Training continues from an exported model, with the user's own pairs."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_hub as hub
import tf_keras
from command_line import refused

from labse_tf.cli.main import main
from labse_tf.training.runs.checkpoints import load_encoder
from labse_tf.training.runs.run_dir import open_existing


@pytest.fixture
def command(tmp_path, bitext_dir):
    """Training with a configuration that says nothing of the encoder and of the vocabulary."""
    file = tmp_path / "finetune.yaml"
    train = f"{{bitext: [{bitext_dir}], batch_size: 8, bucket_lengths: [16, 32], steps: 0}}"
    file.write_text(f"train: {train}\n", encoding="utf-8")
    return ["train", str(file), "--run-dir", str(tmp_path / "run"), "--init"]


def test_training_continues_from_an_exported_model(every_format, shallow_run, tmp_path, command):
    """Sizes and vocabulary are the model's; all its weights are taken, none starts afresh."""
    assert main([*command, str(every_format)]) == 0
    runs = [open_existing(path) for path in (shallow_run, tmp_path / "run")]
    before, after = (load_encoder(run) for run in runs)
    assert len(before.variables) > 20
    for one, other in zip(before.variables, after.variables, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=one.name)
    lines = (tmp_path / "run" / "init.tsv").read_text(encoding="utf-8").splitlines()[1:]
    fates = [line.split("\t")[0] for line in lines]
    assert fates.count("taken") == len(before.variables) and "fresh" not in fates
    assert runs[0].vocab_file.read_bytes() == runs[1].vocab_file.read_bytes()


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("model.json", "is not what `labse export`"),
        ("encoder/assets/vocab.txt", "has no encoder/assets"),
        ("encoder/saved_model.pb", "cannot be read"),
        (None, "'train.bucket_lengths' is [16, 400]"),
    ],
)
def test_a_damaged_model_dir_or_longer_buckets(
    every_format, tmp_path, command, capsys, file, problem
):
    model, options = Path(shutil.copytree(every_format, tmp_path / "model")), []
    if file is None:
        options = ["--set", "train.bucket_lengths=[16,400]"]
    elif "assets" in file:
        (model / file).unlink()
    else:
        (model / file).write_text("{}")
    assert problem in refused(capsys, *command, model, *options)


@pytest.mark.slow
def test_the_text_encoder_is_a_layer_that_trains(every_format):
    """All its weights change in a Keras model, through `hub.KerasLayer`."""
    layer = hub.KerasLayer(f"{every_format}/text_encoder", trainable=True)
    model = tf_keras.Sequential([layer, tf_keras.layers.Dense(2)])
    before = [weight.numpy() for weight in layer.trainable_variables]
    assert len(before) == 23
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.SGD(0.1), loss)
    model.fit(tf.constant(["a cat", "Katze und Haus"]), tf.constant([0, 1]), verbose=0)
    pairs = zip(layer.trainable_variables, before, strict=True)
    still = [weight.name for weight, value in pairs if np.array_equal(weight.numpy(), value)]
    # Softmax does not change with what is added to all keys alike.
    assert all("key/bias" in name for name in still)
