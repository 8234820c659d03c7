"""Writes the plot of an evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from labse_tf.files.outputs import whole_file
from labse_tf.files.plot_formats import plot_format

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_plot(
    draw: Callable[[dict[str, Any], Figure], None],
    result: dict[str, Any],
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> None:
    """Writes the plot of a record.

    Args:
      draw: the task's function; it also sets the figure's size.
      result: the record.
      path: the file; its extension determines the format.
      overwrite: replace an existing file.
    """
    # Imported here because it takes half a second and most evaluations draw nothing.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    draw(result, figure)
    with whole_file(path, overwrite=overwrite) as partial:
        figure.savefig(partial, format=plot_format(path), dpi=130)
