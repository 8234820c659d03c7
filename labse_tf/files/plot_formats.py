"""The formats of the plots that commands write."""

from __future__ import annotations

import os
from pathlib import Path

from labse_tf.errors import InputError

PLOT_FORMATS = ("png", "svg", "pdf")


def plot_format(path: str | os.PathLike[str]) -> str:
    """Returns the format of a plot, from the extension of its file name.

    Raises:
      InputError: if it is not one of PLOT_FORMATS.
    """
    extension = Path(path).suffix.removeprefix(".").lower()
    if extension not in PLOT_FORMATS:
        raise InputError(
            "unknown plot format",
            path=path,
            remedy=f"end the name in .{', .'.join(PLOT_FORMATS)}",
        )
    return extension
