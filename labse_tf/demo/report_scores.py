"""The figures of the demo's report: scores per system, language and script, and loss curves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from labse_tf.coverage.plot import SCRIPT_NAMES
from labse_tf.languages import language_of, script_of

SYSTEMS = {
    "trained": "With layers",
    "table": "Without layers",
    "tfidf": "Character n-gram TF-IDF",
}
DIRECTIONS = {"to_english": "xx → en", "from_english": "en → xx"}
SMALL_POOL = 20
LARGE_POOL = 100  # pairs; chance finds at most 1 % in such a pool


def format_table(evaluation: dict, table: dict) -> str:
    """Returns the accuracies as plain text, the best language first, within 100 columns.

    Args:
      evaluation: result of `labse eval retrieval`, with the systems "model" and "tfidf".
      table: the same for the "model" without layers alone.
    """
    rule = "-" * 80
    lines = [
        f"{'accuracy in %':32}{'with layers':>16}{'without':>16}{'n-gram TF-IDF':>16}",
        f"{'code':6}{'language':19}{'pairs':>7}" + f"{'xx→en':>9}{'en→xx':>7}" * 3,
        rule,
    ]
    for row in language_rows(evaluation, table):
        lines.append(_format_row(row["code"], row["name"], row["pairs"], row["scores"]))
    average = systems_of(evaluation["average"], table["average"])
    return "\n".join([*lines, rule, _format_row("", "average", "", average)])


def _format_row(code: str, name: str, pairs: Any, scores: dict) -> str:
    figures = "".join(
        f"{100 * scores[system]['to_english']:9.1f}{100 * scores[system]['from_english']:7.1f}"
        for system in SYSTEMS
    )
    return f"{code:6}{name:19}{pairs:>7}{figures}"


def systems_of(scores: dict, table: dict) -> dict[str, dict[str, float]]:
    return {
        "trained": scores["model"],
        "table": table["model"],
        "tfidf": scores["tfidf"],
    }


def language_rows(evaluation: dict, table: dict) -> list[dict[str, Any]]:
    rows = [
        {
            "code": code,
            "name": language_of(code).name,
            "script": SCRIPT_NAMES[script_of(code)],
            "pairs": entry["pairs"],
            "scores": systems_of(entry, table["languages"][code]),
        }
        for code, entry in evaluation["languages"].items()
    ]
    return sorted(rows, key=lambda row: (-sum(row["scores"]["trained"].values()), row["name"]))


def script_rows(languages: Sequence[dict]) -> list[dict[str, Any]]:
    members = defaultdict(list)
    for row in languages:
        members[row["script"]].append(row)
    rows = [
        {
            "name": name,
            "languages": len(group),
            "pairs": sum(row["pairs"] for row in group),
            "scores": mean_scores(group),
        }
        for name, group in members.items()
    ]
    return sorted(rows, key=lambda row: (-row["languages"], row["name"]))


def mean_scores(rows: Sequence[dict]) -> dict[str, dict[str, float]]:
    return {
        system: {
            direction: float(np.mean([row["scores"][system][direction] for row in rows]))
            for direction in DIRECTIONS
        }
        for system in SYSTEMS
    }


def curve(rows: Sequence[dict]) -> dict[str, Any] | None:
    """Returns the loss of each logged step, and the axis ticks."""
    rows = [row for row in rows if "loss" in row]  # The others are about held-out text.
    if not rows:
        return None
    ticks = MaxNLocator(nbins=5, min_n_ticks=2)
    steps, losses = ([row[name] for row in rows] for name in ("step", "loss"))
    return {
        "points": list(zip(steps, losses, strict=True)),
        "x_ticks": [int(x) for x in ticks.tick_values(0, steps[-1]) if x <= steps[-1]],
        "x_max": steps[-1],
        "y_ticks": [float(y) for y in ticks.tick_values(0, max(losses))],
        "last": rows[-1],
    }
