"""Compares records of `labse eval`: figures side by side, and how certain differences are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labse_tf.errors import InputError
from labse_tf.evaluation.task import Task, find_task, primary_figure, task_names
from labse_tf.languages import LANGUAGES, find_code

_SAMPLES = 10_000
_PERCENTILES = (2.5, 97.5)


class Difference(NamedTuple):
    """Of two systems' means over the units that both have.

    Attributes:
      mean: the second's minus the first's.
      low, high: the ends of the 95 % interval of the mean.
      units: how many both have.
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
    """One task's records.

    Attributes:
      name: of the task, or of its file.
      task: the task.
      figures: each system's main figure, by its name.
      units: each system's figures by language or part; none of a task without `units`.
      differences: of each system to the first; None where there are fewer than 2 common units.
    """

    name: str
    task: Task
    figures: dict[str, float]
    units: dict[str, dict[str, float]]
    differences: dict[str, Difference | None]

    @property
    def lower_is_better(self) -> bool:
        return getattr(self.task, "LOWER_IS_BETTER", False)


def bootstrap(
    first: Mapping[str, float], second: Mapping[str, float], *, seed: int = 0
) -> Difference | None:
    """Returns the difference of two systems, with the interval of the paired bootstrap.

    Units (languages, say) are drawn again with replacement, the same ones for both systems (Efron
    and Tibshirani 1993, chapter 13). So the interval tells whether other languages like these would
    show the difference too; it knows nothing of the sentences within them.

    Args:
      first: figures by unit.
      second: the same.
      seed: of the draws.
    """
    common = [unit for unit in first if unit in second]
    if len(common) < 2:
        return None
    differences = np.array([second[unit] - first[unit] for unit in common])
    drawn = np.random.default_rng(seed).integers(len(common), size=(_SAMPLES, len(common)))
    low, high = np.percentile(differences[drawn].mean(axis=1), _PERCENTILES)
    return Difference(float(differences.mean()), float(low), float(high), len(common))


def compare(paths: Sequence[str]) -> list[Comparison]:
    """Reads records and compares those of the same task on the same data.

    Args:
      paths: for each system a record, or a folder of records as `labse eval all` writes them.

    Raises:
      InputError: if a file is not a record, two systems have records of different data, or no task
        has records of two systems.
    """
    systems = dict(zip(_names(paths), map(_read, paths), strict=True))
    tasks = list(dict.fromkeys(name for records in systems.values() for name in records))
    found = []
    for name in tasks:
        having = {system: records[name] for system, records in systems.items() if name in records}
        if len(having) > 1:
            _check_same_data(name, having)
            found.append(_compare(name, having))
    if not found:
        raise InputError("no task has records of two systems", remedy="name records of one task")
    return found


def _compare(name: str, records: Mapping[str, dict[str, Any]]) -> Comparison:
    task = find_task(next(iter(records.values()))["task"])
    make = getattr(task, "units", lambda record: {})
    units = {system: make(record) for system, record in records.items()}
    first = next(iter(units.values()))
    return Comparison(
        name,
        task,
        {system: primary_figure(task, record) for system, record in records.items()},
        units,
        {system: bootstrap(first, own) for system, own in list(units.items())[1:]},
    )


def _names(paths: Sequence[str]) -> list[str]:
    """Returns short names that tell the paths apart."""
    names = [Path(path).name.removesuffix(".json") for path in paths]
    return names if len(set(names)) == len(names) else [str(Path(path)) for path in paths]


def _read(path: str) -> dict[str, dict[str, Any]]:
    if Path(path).is_dir():
        files = sorted(Path(path).glob("*.json"))
        if not files:
            raise InputError("holds no records", path=path, remedy="make them by `labse eval all`")
        return {file.name.removesuffix(".json"): _read_record(file) for file in files}
    record = _read_record(Path(path))
    return {record["task"]: record}


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be read as a record ({error})", path=path, remedy="make it by `labse eval`"
        ) from error
    if not isinstance(record, dict) or record.get("task") not in task_names():
        raise InputError("is not a record of a task", path=path, remedy="make it by `labse eval`")
    return record


def _check_same_data(name: str, records: Mapping[str, dict[str, Any]]) -> None:
    (first, one), *others = records.items()
    for system, other in others:
        if one["data"]["sha256"] != other["data"]["sha256"]:
            raise InputError(
                f"{name}: {first} and {system} were evaluated on different data",
                remedy="evaluate both on the same files",
            )


def by_script(units: Mapping[str, float]) -> dict[str, float]:
    """Returns the means over the languages of each script; empty if a unit is not a language."""
    codes = {unit: find_code(unit) for unit in units}
    if not all(codes.values()):
        return {}
    scripts: dict[str, list[float]] = {}
    for unit, code in codes.items():
        scripts.setdefault(LANGUAGES[code].script, []).append(units[unit])
    return {script: float(np.mean(values)) for script, values in sorted(scripts.items())}


def format_table(comparisons: Sequence[Comparison]) -> str:
    """Returns a line per task and system: 100 times the figure, and the difference to the first."""
    names = max(len(one.name) for one in comparisons)
    systems = max(len(system) for one in comparisons for system in one.figures)
    lines = []
    for one in comparisons:
        metric = (
            f"{one.task.PRIMARY_METRIC}, {'lower' if one.lower_is_better else 'higher'} is better"
        )
        for number, (system, figure) in enumerate(one.figures.items()):
            label = one.name if number == 0 else ""
            line = f"{label:{names}}  {system:{systems}}{100 * figure:8.2f}"
            difference = one.differences.get(system)
            if number == 0:
                line += f"  {metric}"
            elif difference:
                line += f"  {describe(difference)}"
            lines.append(line)
    return "\n".join(lines)


def describe(difference: Difference) -> str:
    """Returns the difference with its interval, times 100; a star if it is certain."""
    mean, low, high = (100 * value for value in difference[:3])
    star = " *" if difference.is_certain else ""
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f}, {difference.units} units){star}"
