"""Plots the coverage of a vocabulary: one row per language, grouped by script."""

from __future__ import annotations

import colorsys
import os
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from labse_tf.coverage.scripts import FAMILIES, Family, family_of
from labse_tf.coverage.table import worst_first
from labse_tf.languages import language_of
from vocab.coverage import Coverage

_ROW_INCHES = 0.165
_HEAD_INCHES, _FOOT_INCHES = 0.55, 0.1
_WIDTH_INCHES = 11.0
# Per cent. Linear up to the first step, logarithmic above: most languages lose a thousandth of
# their text or nothing, but one whose script is missing from the vocabulary loses everything.
_LOST_TICKS = (0, 0.1, 1, 10, 100)
_TITLES = (
    "text lost as [UNK] (mark: [UNK] among tokens)",
    "tokens per sentence",
    "sentences truncated",
)


def write_plot(
    coverage: Mapping[str, Coverage], path: str | os.PathLike[str], *, file_format: str
) -> None:
    """Plots for each language the text lost to `[UNK]`, sentence lengths and truncated sentences.

    Args:
      coverage: per language, by the paper's code; at least one.
      path: the file to write.
      file_format: one of `plot_formats.PLOT_FORMATS`.
    """
    groups = _group(coverage)
    rows = len(coverage) + len(groups)
    height = rows * _ROW_INCHES + _HEAD_INCHES + _FOOT_INCHES
    figure = Figure(figsize=(_WIDTH_INCHES, height))
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 3, sharey=True, width_ratios=(4, 3, 2))
    top, bottom = 1 - _HEAD_INCHES / height, _FOOT_INCHES / height
    figure.subplots_adjust(left=0.18, right=0.97, wspace=0.1, top=top, bottom=bottom)
    row = 0
    for family, members in groups:
        _write_name(panels[0], row, family.name, color=_colour(family), fontweight="bold")
        for place, (code, counts) in enumerate(members, start=row + 1):
            _write_name(panels[0], place, f"{language_of(code).name}  {code}")
            _draw_language(panels, place, counts, _colour(family))
        row += 1 + len(members)
    _dress(panels, rows)
    figure.savefig(path, format=file_format, dpi=130)


def _group(coverage: Mapping[str, Coverage]) -> list[tuple[Family, list[tuple[str, Coverage]]]]:
    """Returns the families with at least one language, each with its languages, worst first."""
    ranked = worst_first(coverage)
    groups = (
        (family, [(code, counts) for code, counts in ranked if family_of(code) == family])
        for family in FAMILIES
    )
    return [(family, members) for family, members in groups if members]


def _colour(family: Family) -> tuple[float, float, float]:
    return colorsys.hls_to_rgb(family.hue / 360, 0.42, 0.7)


def _write_name(axes: Axes, row: int, name: str, **style) -> None:
    place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
    axes.text(-0.03, row, name, fontsize=7.5, **place, **style)


def _draw_language(panels: list[Axes], row: int, counts: Coverage, colour: tuple) -> None:
    lost, unknown = 100 * counts.lost_rate, 100 * counts.unknown_rate
    truncated = 100 * counts.truncated_rate
    if unknown:
        panels[0].plot(unknown, row, "|", color="black", markersize=7, zorder=3, clip_on=False)
    _draw_value(panels[0], row, lost, _percent(lost), colour, label_at=max(lost, unknown))
    tokens = counts.tokens_per_sentence
    _draw_value(panels[1], row, tokens, f"{tokens:.0f}", colour)
    _draw_value(panels[2], row, truncated, _percent(truncated), colour)


def _draw_value(
    axes: Axes, row: int, value: float, label: str, colour: tuple, *, label_at: float | None = None
) -> None:
    axes.plot([0, value], [row, row], color=colour, linewidth=1.5, alpha=0.45)
    axes.plot(value, row, "o", color=colour, markersize=4.5, clip_on=False)
    end = (value if label_at is None else label_at, row)
    axes.annotate(label, end, (6, 0), textcoords="offset points", fontsize=7, va="center")


def _percent(value: float) -> str:
    """Returns a percentage with two or three digits, and "" for 0."""
    if value == 0:
        return ""
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def _dress(panels: list[Axes], rows: int) -> None:
    """Sets scales, titles and grid."""
    lost, tokens, truncated = panels
    lost.set_xscale("symlog", linthresh=_LOST_TICKS[1], linscale=0.5)
    lost.set_xlim(0, 100)
    lost.set_xticks(_LOST_TICKS, [f"{tick:g} %" for tick in _LOST_TICKS])
    lost.minorticks_off()
    lost.set_ylim(rows - 0.3, -0.7)
    lost.set_yticks([])
    tokens.set_xlim(0, 1.15 * tokens.dataLim.x1)
    truncated.set_xlim(0, 100)
    truncated.set_xticks((0, 50, 100), ("0 %", "50 %", "100 %"))
    for axes, title in zip(panels, _TITLES, strict=True):
        axes.set_title(title, fontsize=9, loc="left")
        axes.xaxis.tick_top()
        axes.tick_params(axis="x", labelsize=7.5, labelcolor="#666666", length=0)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for spine in axes.spines.values():
            spine.set_visible(False)
