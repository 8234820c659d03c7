"""The task `sts`: semantic textual similarity, such as STS12 to STS16 and the STS benchmark.

The data are files `DIR/<set>/<name>.tsv[.xz]` (or `DIR/<name>.tsv`) of score, sentence 1,
sentence 2 and anything else, as in SentEval. Similarities are compared with human scores by
Pearson's and Spearman's correlation, for two similarities: the cosine, and the angular one,
1 - arccos(cosine) / pi, which Cer et al. 2018 (arXiv 1803.11175, equation 1) found to work better
on average. Spearman's is the same for both, as one is a monotonic function of the other.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.task import Option
from labse_tf.evaluation.texts import check_text
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.textio import read_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY_METRIC = "spearman"
FOLDERS = ("sts",)
DATA = "<set>/<name>.tsv of score, sentence 1, sentence 2: Pearson and Spearman"

METRICS = ("pearson_cosine", "pearson_angular", "spearman")

_SPLITS = ("train", "dev", "test")
OPTIONS = (Option("split", "of files whose names tell a split (default test)", choices=_SPLITS),)
_EXTENSIONS = (".tsv", ".txt")


class ScoredPairs(NamedTuple):
    """The `n` pairs of sentences in a file, and their scores."""

    scores: np.ndarray
    first: list[str]
    second: list[str]


def evaluate(
    encoder: Encoder, data: str | os.PathLike[str], *, split: str = "test"
) -> dict[str, Any]:
    """Evaluates an encoder.

    Args:
      encoder: any.
      data: a folder of files, or of folders of files, one per set.
      split: of the files `NAME.train`, `NAME.dev` and `NAME.test`, use only this one; files whose
        names contain no split are always used.

    Returns:
      The record. `sets`: for each set its `files`, with `pairs` and METRICS for each; `all`, the
      metrics over all pairs of the set, and `mean`, the mean over its files. `spearman`: the mean
      of the sets' `all`. A correlation is NaN if all similarities are equal.

    Raises:
      InputError: if the data are missing or broken.

    Example: with an encoder that counts letters.

      >>> Path("sts").mkdir()
      >>> text = "5.0\\tA cat.\\tThe cat.\\n3.0\\tA cat.\\tA rat.\\n0.0\\tEin Hund.\\tMiau!\\n"
      >>> _ = Path("sts/animals.test.tsv").write_text(text)
      >>> record = evaluate(encoder, "sts")
      >>> record["sets"]["sts"]["files"]["animals"]["pairs"], round(record["spearman"], 3)
      (3, 0.5)
    """
    if split not in _SPLITS:
        raise InputError(f"--split is {split}", remedy=f"choose from {', '.join(_SPLITS)}")
    files = find_files(data, split)
    sets = {
        name: {file: read_scored_pairs(path) for file, path in paths.items()}
        for name, paths in files.items()
    }
    everything = [pairs for set_ in sets.values() for pairs in set_.values()]
    vectors = TextVectors(
        encoder, itertools.chain.from_iterable(pairs.first + pairs.second for pairs in everything)
    )
    scores = {name: score_set(set_, vectors) for name, set_ in sets.items()}
    return make_record(
        "sts",
        encoder,
        data,
        [path for paths in files.values() for path in paths.values()],
        primary_metric=PRIMARY_METRIC,
        directions=("sentence 1 - sentence 2",),
        settings={"split": split},
        scores={
            **_means(set_["all"] for set_ in scores.values()),
            "sets": scores,
        },
    )


def find_files(data: str | os.PathLike[str], split: str) -> dict[str, dict[str, str]]:
    """Returns the paths of the split's files, by set and name.

    Raises:
      InputError: if there is none.
    """
    root = Path(data)
    found: dict[str, dict[str, str]] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name, extension = os.path.splitext(split_compression(path.name)[0])
        stem, _, own_split = name.rpartition(".")
        if extension not in _EXTENSIONS or (own_split in _SPLITS and own_split != split):
            continue
        folder = path.parent.relative_to(root)
        set_ = folder.as_posix() if folder.parts else root.resolve().name
        found.setdefault(set_, {})[stem if own_split in _SPLITS else name] = str(path)
    if not found:
        raise InputError(
            f"holds no files for the split {split}",
            path=data,
            remedy="expected <set>/<name>.tsv of score<TAB>sentence 1<TAB>sentence 2",
        )
    return found


def read_scored_pairs(path: str | os.PathLike[str]) -> ScoredPairs:
    """Reads score, sentence 1, sentence 2; further columns are ignored.

    Raises:
      InputError: as `read_lines`, or if a line has fewer than three columns, a score that is not a
        number, or an empty sentence, or there is only one line.
    """
    scores, first, second = [], [], []
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) < 3:
            raise InputError(
                f"{len(columns)} columns where score, sentence 1 and sentence 2 are expected",
                path=path,
                line=number,
                remedy="separate them by tabs",
            )
        scores.append(_read_score(columns[0], path, number))
        first.append(check_text(columns[1], path, number))
        second.append(check_text(columns[2], path, number))
    if len(scores) < 2:
        raise InputError(
            "has only one pair, too few for a correlation", path=path, remedy="add others"
        )
    return ScoredPairs(np.array(scores), first, second)


def _read_score(column: str, path: str | os.PathLike[str], line: int) -> float:
    try:
        score = float(column)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise InputError(
            f"the score '{column[:40]}' is not a number",
            path=path,
            line=line,
            remedy="give the score as 3.5; leave out pairs without one",
        )
    return score


def score_set(files: dict[str, ScoredPairs], vectors: TextVectors) -> dict[str, Any]:
    """Returns the metrics for each file of a set, over all its pairs, and the mean over files."""
    cosines = {
        name: np.einsum("nd,nd->n", vectors[pairs.first], vectors[pairs.second])
        for name, pairs in files.items()
    }
    scores = {
        name: {"pairs": len(pairs.scores), **correlations(cosines[name], pairs.scores)}
        for name, pairs in files.items()
    }
    together = correlations(
        np.concatenate([cosines[name] for name in files]),
        np.concatenate([pairs.scores for pairs in files.values()]),
    )
    return {
        "pairs": sum(len(pairs.scores) for pairs in files.values()),
        "all": together,
        "mean": _means(scores.values()),
        "files": scores,
    }


def correlations(cosines: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Returns METRICS of `[n]` cosines against `[n]` scores; NaN if either are all equal."""
    # Imported here because it takes most of a second, and other tasks do not need it.
    from scipy.stats import pearsonr, spearmanr

    cosines = np.clip(cosines.astype(np.float64), -1, 1)
    if np.ptp(cosines) == 0 or np.ptp(scores) == 0:
        return dict.fromkeys(METRICS, math.nan)
    return {
        "pearson_cosine": float(pearsonr(cosines, scores).statistic),
        "pearson_angular": float(pearsonr(angular_similarity(cosines), scores).statistic),
        "spearman": float(spearmanr(cosines, scores).statistic),
    }


def angular_similarity(cosines: np.ndarray) -> np.ndarray:
    """Returns 1 - arccos(cosine) / pi, from 0 (opposite) to 1 (same direction)."""
    return 1 - np.arccos(np.clip(cosines, -1, 1)) / np.pi


def _means(rows: Iterable[dict[str, float]]) -> dict[str, float]:
    rows = list(rows)
    return {metric: float(np.mean([row[metric] for row in rows])) for metric in METRICS}


_HEADER = f"{'':34}{'pairs':>6}{'Pearson cos':>13}{'angular':>9}{'Spearman':>10}"


def units(result: dict[str, Any]) -> dict[str, float]:
    """Returns Spearman's correlation over all pairs of each set."""
    return {name: scores["all"]["spearman"] for name, scores in result["sets"].items()}


def format_table(result: dict[str, Any]) -> str:
    """Returns a line per file, two per set, and the mean of the sets; correlations times 100."""
    lines = [_HEADER]
    for name, scores in result["sets"].items():
        lines += [
            _format_row(f"  {file}", row["pairs"], row) for file, row in scores["files"].items()
        ]
        lines.append(_format_row(f"{name}, all together", scores["pairs"], scores["all"]))
        lines.append(_format_row(f"{name}, mean", "", scores["mean"]))
    lines.append("-" * len(_HEADER))
    lines.append(_format_row("mean of the sets (all together)", "", result))
    return "\n".join(lines)


def _format_row(label: str, pairs: int | str, row: dict[str, Any]) -> str:
    cells = zip(METRICS, (13, 9, 10), strict=True)
    numbers = (f"{100 * row[metric]:{width}.2f}" for metric, width in cells)
    return f"{label:34}{pairs:>6}" + "".join(numbers)


def draw(result: dict[str, Any], figure: Figure) -> None:
    """Plots Spearman's correlation of each file, one panel per set."""
    sets = result["sets"]
    widths = [len(set_["files"]) + 1 for set_ in sets.values()]
    figure.set_size_inches(0.3 * sum(widths) + 1.5, 3.6)
    panels = figure.subplots(1, len(sets), sharey=True, width_ratios=widths, squeeze=False)[0]
    for axes, (name, set_) in zip(panels, sets.items(), strict=True):
        files = set_["files"]
        axes.bar(range(len(files)), [100 * row["spearman"] for row in files.values()])
        axes.axhline(100 * set_["all"]["spearman"], color="black", linewidth=0.8)
        axes.set_xticks(range(len(files)), list(files), rotation=90, fontsize=7)
        axes.set_title(name, fontsize=8)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    panels[0].set_ylabel("Spearman x 100 (line: all together)", fontsize=8)
