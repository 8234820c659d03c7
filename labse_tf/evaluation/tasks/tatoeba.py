"""The task `tatoeba`: LASER's Tatoeba test set, as LaBSE's paper reports it (section 4.1, table 5).

Each language has up to 1000 sentences and their English translations. A prediction is correct if
the most similar sentence of the other side has the same index. Ties go to the lowest index, so only
the first of several equal sentences can be found.
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.bitext import accuracy, nearest_indices, weighted_scores
from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.tatoeba_groups import DESCRIPTIONS, GROUPS, members
from labse_tf.evaluation.texts import read_aligned
from labse_tf.files.corpus_files import split_compression
from labse_tf.progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY_METRIC = "accuracy"
FOLDERS = ("tatoeba",)
UNITS_ARE_LANGUAGES = True
DATA = """\
LASER's tatoeba.<xxx>-eng.<xxx> and .eng: accuracy by language and over the groups
of 14, 36, 82 and 112 languages, both directions"""
OPTIONS = ()

DIRECTIONS = ("to_english", "from_english")

_ENGLISH = "eng"
_NAME = re.compile(r"tatoeba\.([a-z]{3})-eng\.([a-z]{3})")


def evaluate(encoder: Encoder, data: str | os.PathLike[str]) -> dict[str, Any]:
    """Evaluates an encoder.

    Args:
      encoder: any.
      data: a folder with `tatoeba.<xxx>-eng.<xxx>` and `tatoeba.<xxx>-eng.eng`, compressed or not.

    Returns:
      The record. `languages`: for each its `pairs`, and by direction `accuracy`, LASER's `error`
      (per cent), and MTEB's `precision`, `recall` and `f1`; `mean_accuracy` of both directions.
      `groups`: for each the macro averages over its languages in `data`. `accuracy`: the mean of
      both directions over all languages in `data`.

    Raises:
      InputError: if the data are missing or broken.

    Example: with an encoder that counts letters.

      >>> Path("tatoeba").mkdir()
      >>> _ = Path("tatoeba/tatoeba.deu-eng.deu").write_text("Hallo Welt.\\nDie Katze schläft.\\n")
      >>> _ = Path("tatoeba/tatoeba.deu-eng.eng").write_text("Hello world.\\nThe cat sleeps.\\n")
      >>> evaluate(encoder, "tatoeba")["accuracy"]
      1.0
    """
    files = find_files(data)
    texts = {code: read_aligned(*paths) for code, paths in files.items()}
    sides = (side for both in texts.values() for side in both)
    vectors = TextVectors(encoder, itertools.chain.from_iterable(sides))
    languages = {}
    with Progress("evaluate", total=len(texts), unit="language") as progress:
        for code, (foreign, english) in progress.each(texts.items()):
            languages[code] = score_language(vectors[foreign], vectors[english])
    groups = {name: _average(languages, codes) for name, codes in members(languages).items()}
    everything = _average(languages, tuple(languages))
    return make_record(
        "tatoeba",
        encoder,
        data,
        [path for paths in files.values() for path in paths],
        primary_metric=PRIMARY_METRIC,
        directions=("xx -> en", "en -> xx"),
        settings={"ties": "the lowest index"},
        scores={
            "accuracy": everything["mean_accuracy"],
            "average": everything,
            "groups": groups,
            "languages": languages,
        },
    )


def find_files(data: str | os.PathLike[str]) -> dict[str, tuple[str, str]]:
    """Returns for each language in the folder the paths of its side and of the English side.

    Raises:
      InputError: if there is none, or one of the two is missing.
    """
    if not os.path.isdir(data):
        raise InputError("no such folder", path=data, remedy="check the path")
    sides: dict[str, dict[str, str]] = {}
    for path in sorted(Path(data).iterdir()):
        if name := _NAME.fullmatch(split_compression(path.name)[0]):
            sides.setdefault(name[1], {})[name[2]] = str(path)
    if not sides:
        raise InputError(
            "holds no files tatoeba.<xxx>-eng.<xxx>",
            path=data,
            remedy="name LASER's folder data/tatoeba/v1",
        )
    for code, paths in sides.items():
        for side in (code, _ENGLISH):
            if side not in paths:
                raise InputError(
                    f"holds no tatoeba.{code}-eng.{side}",
                    path=data,
                    remedy=f"put it beside {os.path.basename(next(iter(paths.values())))}",
                )
    return {code: (paths[code], paths[_ENGLISH]) for code, paths in sides.items()}


def score_language(foreign: np.ndarray, english: np.ndarray) -> dict[str, Any]:
    """Returns the scores of a language from float32 `[pairs, dim]`; rows i are of one pair."""
    own = np.arange(len(foreign))
    scores: dict[str, Any] = {"pairs": len(foreign)}
    for direction, queries, candidates in (
        ("to_english", foreign, english),
        ("from_english", english, foreign),
    ):
        found = nearest_indices(queries, candidates)
        correct = accuracy(found, own)
        scores[direction] = {
            "accuracy": correct,
            "error": 100 * (1 - correct),
            **weighted_scores(found, own),
        }
    scores["mean_accuracy"] = float(np.mean([scores[name]["accuracy"] for name in DIRECTIONS]))
    return scores


def _average(languages: dict[str, dict[str, Any]], codes: tuple[str, ...]) -> dict[str, Any]:
    rows = [languages[code] for code in codes]
    average: dict[str, Any] = {"languages": len(codes)}
    for direction in DIRECTIONS:
        average[direction] = {
            metric: float(np.mean([row[direction][metric] for row in rows]))
            for metric in rows[0][direction]
        }
    average["mean_accuracy"] = float(np.mean([row["mean_accuracy"] for row in rows]))
    return average


_HEADER = (
    f"{'':30}{'accuracy, %':^24}{'error, %':^16}{'F1 (MTEB), %':^16}\n"
    f"{'':22}{'pairs':>8}{'xx-en':>8}{'en-xx':>8}{'mean':>8}{'xx-en':>8}{'en-xx':>8}"
    f"{'xx-en':>8}{'en-xx':>8}"
)


def units(result: dict[str, Any]) -> dict[str, float]:
    """Returns its accuracy in each language."""
    return {code: row["mean_accuracy"] for code, row in result["languages"].items()}


def format_table(result: dict[str, Any]) -> str:
    """Returns a line per language, then one per group, with how many of its languages there are."""
    lines = [_HEADER]
    for code, scores in result["languages"].items():
        lines.append(_format_row(code, scores["pairs"], scores))
    lines.append("-" * len(_HEADER.splitlines()[-1]))
    for name, scores in result["groups"].items():
        label = name if name.isdigit() else ""
        label = f"{label:4}{DESCRIPTIONS[name]}"
        lines.append(_format_row(label, f"{scores['languages']}/{len(GROUPS[name])}", scores))
    return "\n".join(lines)


def _format_row(label: str, count: int | str, scores: dict[str, Any]) -> str:
    there, back = (scores[direction] for direction in DIRECTIONS)
    return (
        f"{label:22}{count:>8}{100 * there['accuracy']:8.1f}{100 * back['accuracy']:8.1f}"
        f"{100 * scores['mean_accuracy']:8.1f}{there['error']:8.2f}{back['error']:8.2f}"
        f"{100 * there['f1']:8.1f}{100 * back['f1']:8.1f}"
    )


def draw(result: dict[str, Any], figure: Figure) -> None:
    """Plots the accuracy of each language in both directions, the best first."""
    ranked = sorted(
        result["languages"].items(), key=lambda item: item[1]["mean_accuracy"], reverse=True
    )
    figure.set_size_inches(max(6, 0.13 * len(ranked) + 1.5), 3.6)
    axes = figure.subplots()
    places = np.arange(len(ranked))
    for direction, label, marker in (
        ("to_english", "xx → en", "o"),
        ("from_english", "en → xx", "x"),
    ):
        heights = [100 * scores[direction]["accuracy"] for _, scores in ranked]
        axes.plot(places, heights, marker, markersize=3.5, label=label)
    axes.set_xticks(places, [code for code, _ in ranked], rotation=90, fontsize=6)
    axes.set_xlim(-1, len(ranked))
    axes.set_ylim(0, 101)
    axes.set_ylabel("accuracy, %")
    average = 100 * result["accuracy"]
    axes.axhline(average, color="#888888", linewidth=0.8, label=f"average {average:.1f}")
    axes.set_title(f"Tatoeba, {len(ranked)} languages: {result['encoder']['name']}", fontsize=9)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=7)
