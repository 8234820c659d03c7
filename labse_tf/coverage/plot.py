"""Plots the coverage of a vocabulary: one row per language, grouped by script."""

from __future__ import annotations

import colorsys
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from labse_tf.coverage.table import worst_first
from labse_tf.languages import language_of, script_of
from vocab.coverage import Coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Family(NamedTuple):
    """Scripts that share a hue, in degrees, in plots: English names by ISO 15924 code."""

    name: str
    hue: int
    scripts: dict[str, str]


def _scripts(names: str) -> dict[str, str]:
    return dict(name.split() for name in names.split(", "))


_NORTHERN_INDIC = (
    "Deva Devanagari, Beng Bengali, Guru Gurmukhi, Gujr Gujarati, Orya Odia, Tibt Tibetan"
)
_SOUTHERN_INDIC = "Taml Tamil, Telu Telugu, Knda Kannada, Mlym Malayalam, Sinh Sinhala"
FAMILIES = (
    Family("Latin", 215, _scripts("Latn Latin")),
    Family("Cyrillic", 0, _scripts("Cyrl Cyrillic")),
    Family("Greek, Armenian, Georgian", 280, _scripts("Grek Greek, Armn Armenian, Geor Georgian")),
    Family("Arabic, Hebrew, Ethiopic", 130, _scripts("Arab Arabic, Hebr Hebrew, Ethi Ethiopic")),
    Family("Northern Indic", 30, _scripts(_NORTHERN_INDIC)),
    Family("Southern Indic", 325, _scripts(_SOUTHERN_INDIC)),
    Family("South-East Asian", 178, _scripts("Thai Thai, Laoo Lao, Khmr Khmer, Mymr Burmese")),
    Family("East Asian", 52, _scripts("Hani Chinese, Jpan Japanese, Kore Korean")),
    Family("other", 85, {}),
)
SCRIPT_NAMES = {code: name for family in FAMILIES for code, name in family.scripts.items()}

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


def family_of(language: str) -> Family:
    """Returns the family of the script that a language is written in."""
    script = script_of(language)
    return next((family for family in FAMILIES if script in family.scripts), FAMILIES[-1])


def write_plot(
    coverage: Mapping[str, Coverage], path: str | os.PathLike[str], *, file_format: str
) -> None:
    """Plots for each language the text lost to `[UNK]`, sentence lengths and truncated sentences.

    Args:
      coverage: per language, by the paper's code; at least one.
      path: the file to write.
      file_format: one of `plot_formats.PLOT_FORMATS`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ranked = worst_first(coverage)
    groups = [
        (family, members)
        for family in FAMILIES
        if (members := [item for item in ranked if family_of(item[0]) == family])
    ]
    rows = len(coverage) + len(groups)
    height = rows * _ROW_INCHES + _HEAD_INCHES + _FOOT_INCHES
    figure = Figure(figsize=(_WIDTH_INCHES, height))
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 3, sharey=True, width_ratios=(4, 3, 2))
    top, bottom = 1 - _HEAD_INCHES / height, _FOOT_INCHES / height
    figure.subplots_adjust(left=0.18, right=0.97, wspace=0.1, top=top, bottom=bottom)
    row = 0
    for family, members in groups:
        colour = colorsys.hls_to_rgb(family.hue / 360, 0.42, 0.7)
        _write_name(panels[0], row, family.name, color=colour, fontweight="bold")
        for place, (code, counts) in enumerate(members, start=row + 1):
            _write_name(panels[0], place, f"{language_of(code).name}  {code}")
            _draw_language(panels, place, counts, colour)
        row += 1 + len(members)
    _dress(panels, rows)
    figure.savefig(path, format=file_format, dpi=130)


def _write_name(axes: Axes, row: int, name: str, **style) -> None:
    place = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center"}
    axes.text(-0.03, row, name, fontsize=7.5, **place, **style)


def _draw_language(panels: list[Axes], row: int, counts: Coverage, colour: tuple) -> None:
    lost, unknown = 100 * counts.lost_rate, 100 * counts.unknown_rate
    tokens, truncated = counts.tokens_per_sentence, 100 * counts.truncated_rate
    if unknown:
        panels[0].plot(unknown, row, "|", color="black", markersize=7, zorder=3, clip_on=False)
    for axes, value, label, end in (
        (panels[0], lost, _percent(lost), max(lost, unknown)),
        (panels[1], tokens, f"{tokens:.0f}", tokens),
        (panels[2], truncated, _percent(truncated), truncated),
    ):
        axes.plot([0, value], [row, row], color=colour, linewidth=1.5, alpha=0.45)
        axes.plot(value, row, "o", color=colour, markersize=4.5, clip_on=False)
        offset = {"xytext": (6, 0), "textcoords": "offset points"}
        axes.annotate(label, (end, row), **offset, fontsize=7, va="center")


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
