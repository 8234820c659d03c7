"""The best checkpoint of a run: the encoder at the step with the best accuracy on dev pairs.

It lies beside the rolling checkpoints, in `checkpoints/best`. `best.json` names its step and
accuracy, and is written last: whatever else is in the folder counts for nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_file

_FOLDER, _RECORD = "best", "best.json"


class Best(NamedTuple):
    """A checkpoint: its path as TensorFlow names it, the step, the accuracy there."""

    path: str
    step: int
    accuracy: float


def read_best(checkpoints: Path) -> Best | None:
    """Returns the best checkpoint in the folder of a run's checkpoints, if there is one.

    Raises:
      InputError: if its record is damaged.
    """
    record = checkpoints / _FOLDER / _RECORD
    if not record.exists():
        return None
    try:
        facts = json.loads(record.read_text("utf-8"))
        step, accuracy = int(facts["step"]), float(facts["accuracy"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            "the record of the best checkpoint is damaged",
            path=record,
            remedy="remove it; the newest checkpoint is used then",
        ) from error
    return Best(_path(checkpoints, step), step, accuracy)


def save_best(
    checkpoint: tf.train.Checkpoint, checkpoints: Path, *, step: int, accuracy: float
) -> Best:
    """Saves `checkpoint` as the best one; the one before stays valid until all is written."""
    best = Best(_path(checkpoints, step), step, accuracy)
    checkpoint.write(best.path)
    record = checkpoints / _FOLDER / _RECORD
    with whole_file(record, overwrite=True) as partial:
        partial.write_text(json.dumps({"step": step, "accuracy": accuracy}) + "\n", "utf-8")
    for file in record.parent.glob("ckpt-*"):
        if file.is_file() and not file.name.startswith(f"ckpt-{step}."):
            file.unlink()
    return best


def _path(checkpoints: Path, step: int) -> str:
    return str(checkpoints / _FOLDER / f"ckpt-{step}")
