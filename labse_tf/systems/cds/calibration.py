"""Chooses a score threshold from pairs that people marked GOOD or BAD (LaBSE, section 3.1)."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence

import numpy as np

from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines

GOOD, BAD = "GOOD", "BAD"
_Z_95 = 1.959964  # The normal quantile of a two-sided 95 % interval.


@dataclasses.dataclass(frozen=True)
class Calibration:
    """A threshold and its effect on the marked pairs.

    Attributes:
      threshold: pairs with at least this score are kept.
      pairs: the number of marked pairs.
      good: the number marked GOOD.
      kept: the number kept.
      kept_good: the number kept that are GOOD.
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

    A threshold is one of the scores, so pairs of equal score stay or go together. Precision need
    not grow with the threshold: higher thresholds may miss the target.

    Args:
      scores: scores of the marked pairs; higher is better.
      is_good: for each pair, whether it is marked GOOD.
      target_precision: the share of the kept pairs that must be GOOD, in (0, 1].
      by_lower_bound: require that the lower end of the precision's 95 % interval meets the target,
        not the precision itself, so that a small sample gives a stricter threshold.

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

    With p = successes / trials, n = trials, z = 1.96:
    `(p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)`

    Args:
      successes: 0 to `trials`.
      trials: 1 or more.
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
    score_column, label_column = _columns(header, path)
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
        scores.append(_number(fields[score_column], path, number))
        is_good.append(label == GOOD)
    if not scores:
        raise InputError(
            "no pair is marked", path=path, remedy=f"write {GOOD} or {BAD} into the column 'label'"
        )
    return scores, is_good, unmarked


def _columns(header: str, path: str | os.PathLike[str]) -> list[int]:
    names = [name.strip().lower() for name in header.split("\t")]
    for wanted in ("score", "label"):
        if wanted not in names:
            raise InputError(
                f"there is no column '{wanted}'",
                path=path,
                line=1,
                remedy="name the columns in the first line, as `labse corpus score-cds` does",
            )
    return [names.index("score"), names.index("label")]


def _number(text: str, path: str | os.PathLike[str], line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"the score is '{text}'", path=path, line=line, remedy="give a finite number"
        )
    return value
