"""Runs that read their corpora anew now and then, and resume between."""

from __future__ import annotations

import pytest
from runs import assert_same_weights, cut_short, labse_run

from labse_tf.data import streams
from labse_tf.training.fit import Trainer

SETTINGS = {
    "train.steps": 11,
    "pretrain.stage_steps": "[11]",
    **{
        f"{section}.loop.{key}": value
        for section in ("train", "pretrain")
        for key, value in (("checkpoint_interval", 2), ("checkpoints_kept", 9), ("log_interval", 3))
    },
    "encoder.num_layers": 1,
    "languages": "[de,th]",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "folder", "sets"),
    [
        ("train", "", ["train.cache_tokens=true"]),
        ("train", "", ["train.cache_tokens=false", "train.bucket_lengths=[16,24]"]),
        # Which tokens are split is drawn anew at each step.
        ("train", "", ["encoder.num_layers=0", "encoder.subwords=[1,3]", "encoder.split_rate=0.3"]),
        ("pretrain", "stage_1", ["pretrain.pack_pairs=true", "encoder.dropout=0.1"]),
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
    sets = [*(f"{key}={value}" for key, value in SETTINGS.items()), *sets]
    unbroken = tmp_path / "unbroken"
    assert labse_run(command, config_file, unbroken, *sets) == 0
    assert len(read) == 2  # After steps 4 and 8.
    assert read[0]._train_loop_fn.experimental_get_tracing_count() == 1
    # Loops end at 2, 4, 6, 8, 10 and 11: what came after the middle of the second segment is lost.
    broken = cut_short(unbroken, tmp_path / "broken", 8, 10, 11, stage=folder)
    assert labse_run(command, config_file, broken, *sets) == 0
    both = (run / "checkpoints" / folder / "ckpt-11" for run in (unbroken, broken))
    # A table is one variable: with its optimiser's and the step, 8 are saved.
    assert_same_weights(*both, least=7)


def _counted(read):
    def setter(trainer, dataset):
        read.append(trainer)
        Trainer.__mro__[1].train_dataset.fset(trainer, dataset)

    return setter
