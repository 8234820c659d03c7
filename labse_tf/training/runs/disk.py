"""Reports a full disk as a one-line error."""

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
    """Within this context, a full disk raises InputError; unfinished saves are removed.

    Args:
      checkpoints: the folder that is saved to; finished checkpoints in it are kept.
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
            remedy="make room; the same command resumes from the last finished checkpoint",
        ) from error


def _no_space(error: OSError | tf.errors.OpError) -> str | None:
    if isinstance(error, OSError):
        return os.strerror(error.errno) if error.errno in NO_SPACE else None
    # TensorFlow's error codes are ambiguous, but its messages contain the system's.
    reasons = (os.strerror(number) for number in NO_SPACE)
    return next((reason for reason in reasons if reason in str(error)), None)
