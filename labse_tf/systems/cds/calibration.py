"""`labse corpus calibrate`: a score threshold from pairs marked by people (LaBSE, section 3.1)."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines

GOOD, BAD = "GOOD", "BAD"
_Z_95 = 1.959964  # The normal quantile of a two-sided 95 % interval.

EXAMPLES = """examples:
  labse corpus score-cds runs/cds clean --sample 500 --out scored.tsv
  (write GOOD or BAD into the column `label` of scored.tsv, in as many lines as you can)
  labse corpus calibrate scored.tsv --target-precision 0.8
  labse corpus filter-bitext web --out clean --cds runs/cds --min-cds-score THRESHOLD

SCORED.tsv has a header with the columns `score` and `label`, in any order, and may have others.
Lines without a label are ignored. The command chooses the lowest threshold at which the share of
GOOD pairs among those kept meets the target; the LaBSE paper uses 80 %."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("scored", metavar="SCORED.tsv")
    parser.add_argument(
        "--target-precision",
        type=float,
        default=0.8,
        metavar="P",
        help="required share of GOOD pairs among those kept, 0 to 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--by-lower-bound",
        action="store_true",
        help="require that the lower end of the precision's 95 %% interval meets the target",
    )


def run(args: argparse.Namespace) -> None:
    target = args.target_precision
    if not 0 < target <= 1:
        raise InputError(f"--target-precision is {target}", remedy="give a share from 0 to 1")
    scores, is_good, unmarked = read_marked(args.scored)
    found = choose_threshold(
        scores, is_good, target_precision=target, by_lower_bound=args.by_lower_bound
    )
    print(f"threshold  {found.threshold!r}")
    print(f"marked     {found.pairs} pairs, {found.good} of them GOOD; {unmarked} without a label")
    print(f"kept       {found.kept}, {found.kept_good} of them GOOD")
    for name, trials in (("precision", found.kept), ("recall", found.good)):
        low, high = wilson_interval(found.kept_good, trials)
        value = getattr(found, name)
        print(f"{name:9}  {value:.3f} (95 % interval {low:.3f} to {high:.3f})")


class Calibration(NamedTuple):
    """A threshold and its effect: numbers of pairs that are marked, marked GOOD, and kept.

    Pairs with at least this score are kept.
    """

    threshold: float
    pairs: int
    good: int
    kept: int
    kept_good: int

    @property
    def precision(self) -> float:
        """The share of the kept pairs that are GOOD."""
        return self.kept_good / self.kept

    @property
    def recall(self) -> float:
        """The share of the GOOD pairs that are kept."""
        return self.kept_good / self.good


def choose_threshold(
    scores: Sequence[float],
    is_good: Sequence[bool],
    *,
    target_precision: float,
    by_lower_bound: bool = False,
) -> Calibration:
    """Returns the lowest threshold that meets the target precision, which keeps the most pairs.

    A threshold is one of the scores, so pairs of equal score stay or go together. Precision, the
    share of kept pairs that are GOOD, need not grow with the threshold: higher thresholds may miss
    the target. With `by_lower_bound`, the lower end of its 95 % interval must meet the target, so
    that a small sample gives a stricter threshold.

    Raises:
      InputError: if no pair is GOOD, or no threshold meets the target.
    """
    scores, is_good = np.asarray(scores, np.float64), np.asarray(is_good, bool)
    if not is_good.any():
        raise InputError(f"no pair is marked {GOOD}", remedy="mark more pairs")
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    is_last_of_score = np.append(descending[1:] != descending[:-1], True)
    kept = np.flatnonzero(is_last_of_score) + 1
    kept_good = np.cumsum(is_good[order])[kept - 1]
    reached = kept_good / kept
    if by_lower_bound:
        reached = [wilson_interval(*counts)[0] for counts in zip(kept_good, kept, strict=True)]
    meets = np.flatnonzero(np.asarray(reached) >= target_precision)
    if not meets.size:
        raise InputError(
            f"no threshold reaches {target_precision:.1%} {GOOD} pairs; the best reaches "
            f"{max(reached):.1%}" + (" by the lower bound" if by_lower_bound else ""),
            remedy="lower --target-precision or mark more pairs",
        )
    lowest = meets[-1]
    return Calibration(
        threshold=float(descending[kept[lowest] - 1]),
        pairs=len(scores),
        good=int(is_good.sum()),
        kept=int(kept[lowest]),
        kept_good=int(kept_good[lowest]),
    )


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Returns the 95 % score interval of a proportion (Wilson 1927).

    With p = successes / trials, n = trials (1 or more), z = 1.96:
    `(p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)`
    """
    share, z = successes / trials, _Z_95
    middle = share + z**2 / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    scale = 1 + z**2 / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def read_marked(path: str | os.PathLike[str]) -> tuple[list[float], list[bool], int]:
    """Reads a TSV file whose header names the columns `score` and `label`.

    Returns:
      The scores of the marked pairs; for each, whether it is GOOD; the number of unmarked pairs,
      which are skipped.

    Raises:
      InputError: for a missing column, a score that is not a finite number, or a label other than
        GOOD and BAD.
    """
    lines = read_lines(path)
    _, header = next(lines)
    names = [name.strip().lower() for name in header.split("\t")]
    for wanted in ("score", "label"):
        if wanted not in names:
            raise InputError(
                f"there is no column '{wanted}'",
                path=path,
                line=1,
                remedy="name the columns in the first line, as `labse corpus score-cds` does",
            )
    score_column, label_column = names.index("score"), names.index("label")
    scores, is_good, unmarked = [], [], 0
    for number, line in lines:
        fields = line.split("\t")
        label = fields[label_column].strip().upper() if label_column < len(fields) else ""
        if not label:
            unmarked += 1
            continue
        if label not in (GOOD, BAD):
            raise InputError(
                f"the label is '{label}'", path=path, line=number, remedy=f"use {GOOD} or {BAD}"
            )
        text, value = fields[score_column], math.nan
        with contextlib.suppress(ValueError):
            value = float(text)
        if not math.isfinite(value):
            problem = f"the score is '{text}'"
            raise InputError(problem, path=path, line=number, remedy="give a finite number")
        scores.append(value)
        is_good.append(label == GOOD)
    if not scores:
        raise InputError(
            "no pair is marked", path=path, remedy=f"write {GOOD} or {BAD} into the column 'label'"
        )
    return scores, is_good, unmarked
