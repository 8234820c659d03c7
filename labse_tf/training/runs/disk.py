"""A full disk, said in one line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.files.outputs import NO_SPACE
from labse_tf.training.runs.checkpoints import remove_unfinished


@contextlib.contextmanager
def disk_errors(checkpoints: Path) -> Iterator[None]:
    """Inside, a disk that takes no more raises InputError; what a save left half done is removed.

    Args:
      checkpoints: the folder that is saved to; the checkpoints in it stay as they are.
    """
    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        reason = _no_space(error)
        if reason is None:
            raise
        remove_unfinished(checkpoints)
        raise InputError(
            f"cannot be written to ({reason})",
            path=checkpoints,
            remedy="make room; the same command goes on from the last whole checkpoint",
        ) from error


def _no_space(error: OSError | tf.errors.OpError) -> str | None:
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno in NO_SPACE else None
    # TensorFlow has other codes, the same for several things, but keeps the system's words.
    reasons = (os.strerror(number) for number in NO_SPACE)
    return next((reason for reason in reasons if reason in str(error)), None)
