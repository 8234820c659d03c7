"""The page of `labse eval compare`: one HTML file with tables and plots."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from labse_tf.evaluation.comparison import Comparison, by_script, describe
from labse_tf.evaluation.task import describe_figure
from labse_tf.files.outputs import whole_file

_INCHES_OF_A_UNIT, _LEAST_INCHES, _MOST_INCHES = 0.16, 6.0, 40.0

_PAGE = Path(__file__).with_suffix(".html.j2")


def write_page(
    comparisons: Sequence[Comparison], path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Writes the page, which needs no other file."""
    from jinja2 import Environment, StrictUndefined

    systems = list(dict.fromkeys(system for one in comparisons for system in one.figures))
    parts = [(one, plot(one), _scripts(one)) for one in comparisons if any(one.units.values())]
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        _PAGE.read_text("utf-8")
    )
    text = template.render(
        comparisons=comparisons,
        systems=systems,
        parts=parts,
        describe=describe,
        describe_figure=describe_figure,
    )
    with whole_file(path, overwrite=overwrite) as partial:
        partial.write_text(text, "utf-8")


def _scripts(comparison: Comparison) -> dict[str, dict[str, float]]:
    """Returns the means by script of each system; empty unless the units are languages."""
    if not getattr(comparison.task, "UNITS_ARE_LANGUAGES", False):
        return {}
    return {system: by_script(units) for system, units in comparison.units.items()}


def plot(comparison: Comparison) -> str:
    """Returns an SVG with the figures of all systems, units sorted by those of the first one."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    first, *others = comparison.units.values()
    names = sorted(first, key=first.get, reverse=True)
    names += [unit for units in others for unit in units if unit not in names]
    width = min(max(_LEAST_INCHES, _INCHES_OF_A_UNIT * len(names)), _MOST_INCHES)
    figure = Figure(figsize=(width, 3.6), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    for marker, (system, units) in zip(_markers(), comparison.units.items(), strict=False):
        heights = [100 * units[name] if name in units else None for name in names]
        axes.plot(range(len(names)), heights, marker, markersize=4, label=system)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
    axes.set_ylabel(f"{comparison.task.PRIMARY_METRIC}, %", fontsize=8)
    axes.legend(fontsize=8)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_xlim(-0.6, len(names) - 0.4)
    output = io.StringIO()
    figure.savefig(output, format="svg")
    # Without the declaration of a file of its own.
    return output.getvalue()[output.getvalue().index("<svg") :]


def _markers() -> Iterator[str]:
    while True:
        yield from "osD^vPX"
