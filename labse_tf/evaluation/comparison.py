"""Compares records of `labse eval`: figures side by side, and how certain differences are."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labse_tf.errors import InputError
from labse_tf.evaluation.result import Column, Part, Result, draw
from labse_tf.evaluation.task import (
    Task,
    describe,
    describe_figure,
    find_task,
    primary_figure,
    read_record,
)
from labse_tf.files.outputs import whole_file
from labse_tf.languages import UNKNOWN_SCRIPT, find_code, script_of

_SAMPLES = 10_000
# With 5 units, chance gives all differences the same sign once in 16.
_LEAST_UNITS = 6
# Settings that are paths, or name additional measurements.
_NOT_COMPARED = ("baseline", "components_of", "perturbed", "tatoeba", "train")
_PERCENTILES = (2.5, 97.5)
_PAGE = Path(__file__).with_suffix(".html.j2")


class Difference(NamedTuple):
    """The second system's mean minus the first's over the `units` that both have.

    The 95 % interval of the mean is from `low` to `high`.
    """

    mean: float
    low: float
    high: float
    units: int

    @property
    def is_certain(self) -> bool:
        """Whether 0 is outside of the interval."""
        return self.low > 0 or self.high < 0


class Comparison(NamedTuple):
    """The records of one task, by system; `name` is the task's or its file's."""

    name: str
    task: Task
    figures: dict[str, float]
    # By language or part; empty if the task has none.
    units: dict[str, dict[str, float]]
    # To the first system; None if there are too few common units.
    differences: dict[str, Difference | None]


def bootstrap(
    first: Mapping[str, float], second: Mapping[str, float], *, seed: int = 0
) -> Difference | None:
    """Returns the difference of two systems, with the interval of the paired bootstrap.

    Units (languages, say) are drawn again with replacement, the same ones for both systems (Efron
    and Tibshirani 1993, chapter 13). So the interval tells whether other languages like these would
    show the difference too; it knows nothing of the sentences within them. Returns None if there
    are fewer than 6 common units.
    """
    common = [unit for unit in first if unit in second]
    if len(common) < _LEAST_UNITS:
        return None
    differences = np.array([second[unit] - first[unit] for unit in common])
    drawn = np.random.default_rng(seed).integers(len(common), size=(_SAMPLES, len(common)))
    low, high = np.percentile(differences[drawn].mean(axis=1), _PERCENTILES)
    return Difference(float(differences.mean()), float(low), float(high), len(common))


def compare(paths: Sequence[str]) -> list[Comparison]:
    """Reads records, or folders of records, and compares those of the same task on the same data.

    Raises:
      InputError: if a file is not a record, two systems have records of different data, or no task
        has records of two systems.
    """
    if len(set(paths)) < len(paths):
        raise InputError("a result is named twice", remedy="name each one once")
    # Short names, if they tell the paths apart.
    names = [Path(path).name.removesuffix(".json") for path in paths]
    if len(set(names)) < len(names):
        names = [str(Path(path)) for path in paths]
    systems = dict(zip(names, map(_read, paths), strict=True))
    found = []
    for name in dict.fromkeys(name for records in systems.values() for name in records):
        having = {system: records[name] for system, records in systems.items() if name in records}
        if len(having) > 1:
            _check_alike(name, having)
            found.append(_compare(name, having))
    if not found:
        raise InputError("no task has records of two systems", remedy="name records of one task")
    return found


def _compare(name: str, records: Mapping[str, dict[str, Any]]) -> Comparison:
    task = find_task(next(iter(records.values()))["task"])
    # Undefined figures are left out: NaN, or null in JSON.
    units = {
        system: {
            unit: value
            for unit, value in describe(task, record).units.items()
            if value is not None and not math.isnan(value)
        }
        for system, record in records.items()
    }
    first, *others = units
    return Comparison(
        name,
        task,
        {system: primary_figure(task, record) for system, record in records.items()},
        units,
        {system: bootstrap(units[first], units[system]) for system in others},
    )


def _read(path: str) -> dict[str, dict[str, Any]]:
    if Path(path).is_dir():
        files = sorted(Path(path).glob("*.json"))
        if not files:
            raise InputError("holds no records", path=path, remedy="make them by `labse eval all`")
        return {file.name.removesuffix(".json"): read_record(file) for file in files}
    record = read_record(Path(path))
    return {record["task"]: record}


def _check_alike(name: str, records: Mapping[str, dict[str, Any]]) -> None:
    (first, one), *others = records.items()
    for system, other in others:
        if one["data"]["sha256"] != other["data"]["sha256"]:
            problem = f"{name}: {first} and {system} were evaluated on different data"
            raise InputError(problem, remedy="evaluate both on the same files")
        for key in one["settings"].keys() - _NOT_COMPARED:
            ours, theirs = (record["settings"].get(key) for record in (one, other))
            if ours != theirs:
                problem = f"{name}: '{key}' is {ours} of {first}, and {theirs} of {system}"
                raise InputError(problem, remedy="evaluate both with the same options")


def by_script(units: Mapping[str, float]) -> dict[str, float]:
    """Returns the means over the languages of each script.

    The code names the script (`srp_Latn`), or it is the main one of a language among the paper's;
    other languages are counted together.
    """
    scripts: dict[str, list[float]] = {}
    for language, value in units.items():
        subtag, code = re.search(r"[-_]([A-Z][a-z]{3})\b", language), find_code(language)
        script = subtag[1] if subtag else script_of(code) if code else UNKNOWN_SCRIPT
        scripts.setdefault("other" if script == UNKNOWN_SCRIPT else script, []).append(value)
    return {script: float(np.mean(values)) for script, values in sorted(scripts.items())}


def format_comparisons(comparisons: Sequence[Comparison]) -> str:
    """Returns a line per task and system: 100 times the figure, and the difference to the first."""
    names = max(len(one.name) for one in comparisons)
    systems = max(len(system) for one in comparisons for system in one.figures)
    lines = []
    for one in comparisons:
        for number, (system, figure) in enumerate(one.figures.items()):
            label, note = one.name, describe_figure(one.task)
            if number:
                label, note = "", format_difference(one.differences[system])
            line = f"{label:{names}}  {system:{systems}}{format_percent(figure):>8}  {note}"
            lines.append(line.rstrip())
    return "\n".join(lines)


def format_percent(figure: float) -> str:
    return "-" if math.isnan(figure) else f"{100 * figure:.2f}"


def format_difference(difference: Difference | None) -> str:
    """Returns the difference with its interval, times 100; a star if it is certain."""
    if difference is None:
        return ""
    mean, low, high = (100 * value for value in difference[:3])
    star = " *" if difference.is_certain else ""
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f}, {difference.units} units){star}"


def write_page(
    comparisons: Sequence[Comparison], path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Writes an HTML page with tables and plots, which needs no other file."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.filters["by_script"] = by_script
    text = environment.from_string(_PAGE.read_text("utf-8")).render(
        comparisons=comparisons,
        systems=list(dict.fromkeys(system for one in comparisons for system in one.figures)),
        plot=_plot,
        format_percent=format_percent,
        format_difference=format_difference,
        describe_figure=describe_figure,
    )
    with whole_file(path, overwrite=overwrite) as partial:
        partial.write_text(text, "utf-8")


def _plot(comparison: Comparison) -> str:
    """Returns an SVG with the figures of all systems."""
    systems = {str(number): units for number, units in enumerate(comparison.units.values())}
    names = dict.fromkeys(name for units in systems.values() for name in units)
    rows = {name: {key: units.get(name) for key, units in systems.items()} for name in names}
    columns = [
        Column(system, key, style="point")
        for key, system in zip(systems, comparison.units, strict=True)
    ]
    output = io.StringIO()
    result = Result([Part(comparison.task.PRIMARY_METRIC, rows, columns)])
    draw(result).savefig(output, format="svg")
    # Without the declaration of a file of its own.
    return output.getvalue()[output.getvalue().index("<svg") :]
