"""The plot that an evaluation leaves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOT_FORMATS = ("png", "svg", "pdf")


def plot_format(path: str | os.PathLike[str]) -> str:
    """Returns the format that the name of a picture asks for.

    Raises:
      InputError: if it is none of PLOT_FORMATS.
    """
    extension = Path(path).suffix.removeprefix(".").lower()
    if extension not in PLOT_FORMATS:
        raise InputError(
            "unknown kind of picture",
            path=path,
            remedy=f"end the name in .{', .'.join(PLOT_FORMATS)}",
        )
    return extension


def write_plot(
    draw: Callable[[dict[str, Any], Figure], None],
    result: dict[str, Any],
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> None:
    """Writes a picture of a record.

    Args:
      draw: the task's; it sets the figure's size too.
      result: the record.
      path: the file; its ending tells the format.
      overwrite: replace what is there.
    """
    # Here, since most evaluations draw nothing, and this takes half a second.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    draw(result, figure)
    with whole_file(path, overwrite=overwrite) as partial:
        figure.savefig(partial, format=plot_format(path), dpi=130)
