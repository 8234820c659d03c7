"""`labse corpus calibrate`: a score threshold from pairs marked by people (LaBSE, section 3.1)."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labse_tf.cli.arguments import add_options
from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines

GOOD, BAD = "GOOD", "BAD"

EXAMPLES = """examples:
  labse corpus score-cds runs/cds clean --sample 500 --out scored.tsv
  (write GOOD or BAD into the column `label` of scored.tsv, in as many lines as you can)
  labse corpus calibrate scored.tsv --target-precision 0.8
  labse corpus filter-bitext web --out clean --cds runs/cds --min-cds-score THRESHOLD

SCORED.tsv has a header with the columns `score` and `label`, in any order, and may have others.
Lines without a label are ignored. The command chooses the lowest threshold at which the share of
GOOD pairs among those kept meets the target; the LaBSE paper uses 80 %."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(
        parser,
        """
        scored SCORED.tsv: of `labse corpus score-cds`, with labels
        --target-precision P=0.8: required share of GOOD pairs among those kept, 0 to 1
        """,
    )


def run(args: argparse.Namespace) -> None:
    from scipy.stats import binomtest

    target = args.target_precision
    if not 0 < target <= 1:
        raise InputError(f"--target-precision is {target}", remedy="give a share from 0 to 1")
    scores, is_good, unmarked = read_marked(args.scored)
    found = choose_threshold(scores, is_good, target_precision=target)
    print(f"threshold  {found.threshold!r}")
    print(f"marked     {found.pairs} pairs, {found.good} of them GOOD; {unmarked} without a label")
    print(f"kept       {found.kept}, {found.kept_good} of them GOOD")
    for name, trials in (("precision", found.kept), ("recall", found.good)):
        low, high = binomtest(found.kept_good, trials).proportion_ci(method="wilson")
        share = found.kept_good / trials
        print(f"{name:9}  {share:.3f} (95 % interval {low:.3f} to {high:.3f})")


class Calibration(NamedTuple):
    """The lowest score that is kept, and numbers of pairs: marked, GOOD, kept, kept and GOOD."""

    threshold: float
    pairs: int
    good: int
    kept: int
    kept_good: int


def choose_threshold(
    scores: Sequence[float], is_good: Sequence[bool], *, target_precision: float
) -> Calibration:
    """Returns the lowest threshold that meets the target precision, which keeps the most pairs.

    A threshold is one of the scores, so pairs of equal score stay or go together. Precision, the
    share of kept pairs that are GOOD, need not grow with the threshold: higher thresholds may miss
    the target. Raises InputError if no pair is GOOD, or no threshold meets the target.
    """
    scores, is_good = np.asarray(scores, np.float64), np.asarray(is_good, bool)
    if not is_good.any():
        raise InputError(f"no pair is marked {GOOD}", remedy="mark more pairs")
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    kept = np.flatnonzero(np.append(descending[1:] != descending[:-1], True)) + 1
    kept_good = np.cumsum(is_good[order])[kept - 1]
    meets = np.flatnonzero(kept_good / kept >= target_precision)
    if not meets.size:
        raise InputError(
            f"no threshold reaches {target_precision:.1%} {GOOD} pairs; the best reaches "
            f"{max(kept_good / kept):.1%}",
            remedy="lower --target-precision or mark more pairs",
        )
    count, good = int(kept[meets[-1]]), int(kept_good[meets[-1]])
    threshold = float(descending[count - 1])
    return Calibration(threshold, len(scores), int(is_good.sum()), count, good)


def read_marked(path: str | os.PathLike[str]) -> tuple[list[float], list[bool], int]:
    """Reads a TSV file whose header names the columns `score` and `label`.

    Returns the scores of the marked pairs; for each, whether it is GOOD; the number of unmarked
    pairs. Raises InputError for a missing column, a score that is not a finite number, or a label
    other than GOOD and BAD.
    """
    lines = read_lines(path)
    names = [name.strip().lower() for name in next(lines)[1].split("\t")]
    for wanted in ("score", "label"):
        if wanted not in names:
            remedy = "name the columns in the first line, as `labse corpus score-cds` does"
            raise InputError(f"there is no column '{wanted}'", path=path, line=1, remedy=remedy)
    score_column, label_column = names.index("score"), names.index("label")
    scores, is_good, unmarked = [], [], 0
    for number, line in lines:
        fields = line.split("\t")
        label = fields[label_column].strip().upper() if label_column < len(fields) else ""
        if not label:
            unmarked += 1
            continue
        if label not in (GOOD, BAD):
            problem = f"the label is '{label}'"
            raise InputError(problem, path=path, line=number, remedy=f"use {GOOD} or {BAD}")
        scores.append(math.nan)
        with contextlib.suppress(ValueError):
            scores[-1] = float(fields[score_column])
        if not math.isfinite(scores[-1]):
            problem = f"the score is '{fields[score_column]}'"
            raise InputError(problem, path=path, line=number, remedy="give a finite number")
        is_good.append(label == GOOD)
    if not scores:
        remedy = f"write {GOOD} or {BAD} into the column 'label'"
        raise InputError("no pair is marked", path=path, remedy=remedy)
    return scores, is_good, unmarked
