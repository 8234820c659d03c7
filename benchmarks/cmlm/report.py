"""Prints the results of an experiment: `python -m benchmarks.cmlm.report DIR`, see run.py.

A row for each arm, with the mean over seeds and its standard error: steps of the last stage, by how
much the held-out loss rises if neighbours are shuffled, and 100 times the figures of the tests. Of
the task `tatoeba` that is the mean accuracy of all languages, and of those with few pairs
(benchmarks/cmlm/data.py).
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cmlm.data import FEW, LANGUAGES
from benchmarks.cmlm.run import RESULTS
from labse_tf.evaluation.task import find_task, primary_figure
from labse_tf.evaluation.tasks.senteval import main_figure

_CLS = ", [CLS]"


def report(folder: Path) -> str:
    """Returns the table in Markdown."""
    rows: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted((folder / RESULTS).glob("*.json")):
        found = json.loads(path.read_text("utf-8"))
        for name, value in _of_training(found["runs"]):
            rows[found["arm"]][name].append(value)
        for name, record in found["scores"].items():
            arm = found["arm"] + _CLS * name.endswith(_CLS)
            for figure, value in _of_test(name.removesuffix(_CLS), record):
                rows[arm][figure].append(100 * value)
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [["", *columns], ["---"] * (len(columns) + 1)]
    lines += [
        [arm, *(_mean(row[name]) if name in row else "" for name in columns)]
        for arm, row in rows.items()
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _of_training(runs: list[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    yield "steps", runs[-1]["steps"]
    held_out = [run["held_out"] for run in runs if run.get("held_out")]
    losses = held_out[-1] if held_out else {}
    if "cmlm" in losses:
        yield "held-out loss", losses["cmlm"]["loss"]
        yield "shuffled", losses["cmlm_shuffled"]["loss"] - losses["cmlm"]["loss"]
    if "inference" in losses:
        yield "XNLI", 100 * losses["inference"]["accuracy"]
        yield "XNLI, crossed", 100 * losses["inference"]["crossed"]


def _of_test(name: str, record: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    if record["task"] == "senteval":
        for task, scores in record["tasks"].items():
            yield task, main_figure(scores["model"])
    yield name, primary_figure(find_task(record["task"]), record)
    if record["task"] == "tatoeba":
        few = [record["languages"].get(LANGUAGES[language]) for language in FEW]
        if all(few):
            yield f"{name}, few", float(np.mean([scores["mean_accuracy"] for scores in few]))


def _mean(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4g}"
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.4g} +- {error:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    print(report(parser.parse_args().folder))


if __name__ == "__main__":
    main()
