"""The best checkpoint of a run: the encoder at the step that measured best in a task.

It is in `checkpoints/best`, beside the rolling checkpoints. `best.json` has its step and accuracy,
and is written last: anything in the folder that it does not name is ignored.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_file

DEV_PAIRS = "retrieval"
_FOLDER, _RECORD = "best", "best.json"


class Best(NamedTuple):
    """A checkpoint: its path prefix for TensorFlow, its step, and the measurement there.

    `accuracy` is the primary metric of `task`: DEV_PAIRS, or a task of `train.evaluate`.
    """

    path: str
    step: int
    accuracy: float
    task: str = DEV_PAIRS


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
        task = str(facts.get("task", DEV_PAIRS))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            "the record of the best checkpoint is damaged",
            path=record,
            remedy="remove it; the newest checkpoint is used then",
        ) from error
    return Best(_path(checkpoints, step), step, accuracy, task)


def save_best(
    checkpoint: tf.train.Checkpoint,
    checkpoints: Path,
    *,
    step: int,
    accuracy: float,
    task: str = DEV_PAIRS,
    options: tf.train.CheckpointOptions | None = None,
) -> Best:
    """Saves `checkpoint` as the best; the previous one stays valid until writing is complete."""
    best = Best(_path(checkpoints, step), step, accuracy, task)
    checkpoint.write(best.path, options)
    record = checkpoints / _FOLDER / _RECORD
    facts = {"step": step, "accuracy": accuracy}
    if task != DEV_PAIRS:
        facts["task"] = task
    with whole_file(record, overwrite=True) as partial:
        partial.write_text(json.dumps(facts) + "\n", "utf-8")
    for file in record.parent.glob("ckpt-*"):
        if file.is_file() and not file.name.startswith(f"ckpt-{step}."):
            file.unlink()
    return best


def _path(checkpoints: Path, step: int) -> str:
    return str(checkpoints / _FOLDER / f"ckpt-{step}")
