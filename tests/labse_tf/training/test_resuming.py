"""Runs that read their corpora anew now and then, and resume between."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import tensorflow as tf

from labse_tf.cli.main import main
from labse_tf.data import streams
from labse_tf.training.fit import Trainer

SETTINGS = {
    "train.steps": 11,
    "train.loop.checkpoint_interval": 2,
    "train.loop.checkpoints_kept": 9,
    "train.loop.log_interval": 3,
    "pretrain.stage_steps": "[11]",
    "pretrain.loop.checkpoint_interval": 2,
    "pretrain.loop.checkpoints_kept": 9,
    "pretrain.loop.log_interval": 3,
    "encoder.num_layers": 1,
    "languages": "[de,th]",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "folder", "sets"),
    [
        ("train", "", ["train.cache_tokens=true"]),
        ("train", "", ["train.cache_tokens=false", "train.bucket_lengths=[16,24]"]),
        ("pretrain", "stage_1", ["pretrain.pack_pairs=true"]),
    ],
)
def test_a_run_resumed_within_a_segment_has_the_same_weights(
    tmp_path, config_file, monkeypatch, command, folder, sets
):
    monkeypatch.setattr(streams, "SEGMENT", 4)
    read = []
    monkeypatch.setattr(
        Trainer, "train_dataset", property(Trainer.train_dataset.fget, _counted(read))
    )
    sets = [
        *(f"--set={key}={value}" for key, value in SETTINGS.items()),
        *(f"--set={one}" for one in sets),
    ]
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    assert main([command, str(config_file), "--run-dir", str(unbroken), *sets]) == 0
    assert len(read) == 2  # After steps 4 and 8.
    assert read[0]._train_loop_fn.experimental_get_tracing_count() == 1
    shutil.copytree(unbroken, broken)
    # Loops end at 2, 4, 6, 8, 10 and 11: what came after the middle of the second segment is lost.
    kept = broken / "checkpoints" / folder
    for step in (8, 10, 11):
        for file in kept.glob(f"ckpt-{step}.*"):
            file.unlink()
    assert (kept / "ckpt-6.index").exists()
    assert main([command, str(config_file), "--run-dir", str(broken), *sets]) == 0
    one, other = (
        tf.train.load_checkpoint(str(run / "checkpoints" / folder / "ckpt-11"))
        for run in (unbroken, broken)
    )
    names = [name for name in one.get_variable_to_shape_map() if "VARIABLE_VALUE" in name]
    assert len(names) > 10
    for name in names:
        np.testing.assert_array_equal(one.get_tensor(name), other.get_tensor(name))


def _counted(read):
    def setter(trainer, dataset):
        read.append(trainer)
        Trainer.__mro__[1].train_dataset.fset(trainer, dataset)

    return setter
