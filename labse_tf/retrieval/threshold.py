"""Chooses the score threshold with the best F1 on gold pairs."""

from __future__ import annotations

import dataclasses
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Threshold:
    """Quality of the pairs with `score >= threshold`, measured on gold pairs.

    Attributes:
      threshold: a score; inf if there are no pairs.
      precision: gold pairs kept / all pairs kept; 0 if none is kept.
      recall: gold pairs kept / all gold pairs.
      f1: the harmonic mean of the two; 0 if both are 0.
    """

    threshold: float
    precision: float
    recall: float
    f1: float


def best_threshold(scores: np.ndarray, is_gold: np.ndarray, gold_count: int) -> Threshold:
    """Returns the threshold with the best F1; on ties, the highest.

    It is midway between the lowest score that is kept and the highest that is not. Pairs with equal
    scores are all kept or all dropped.

    Args:
      scores: `[n]` floats, in any order.
      is_gold: `[n]` bools, whether each pair is a gold pair; a gold pair occurs at most once.
      gold_count: number of all gold pairs, found or not.

    Raises:
      ValueError: if `gold_count` is less than 1, or less than the number of gold pairs in
        `is_gold`.
    """
    found = _check(scores, is_gold, gold_count)
    if not len(scores):
        return Threshold(math.inf, 0.0, 0.0, 0.0)
    order = np.argsort(-scores, kind="stable")
    ordered = np.asarray(scores, np.float64)[order]
    right = np.cumsum(found[order])
    kept = np.arange(1, len(ordered) + 1)
    # 2PR / (P + R), with P = right / kept and R = right / gold_count.
    f1 = 2 * right / (kept + gold_count)
    f1[:-1][ordered[:-1] == ordered[1:]] = -1
    last = int(f1.argmax())
    lowest = float(ordered[last])
    following = float(ordered[last + 1]) if last + 1 < len(ordered) else lowest
    middle = (lowest + following) / 2
    return at_threshold(scores, is_gold, gold_count, middle if middle > following else lowest)


def at_threshold(
    scores: np.ndarray, is_gold: np.ndarray, gold_count: int, threshold: float
) -> Threshold:
    """Returns the quality of the pairs with `score >= threshold`; arguments as `best_threshold`."""
    found = _check(scores, is_gold, gold_count)
    keeps = np.asarray(scores, np.float64) >= threshold
    right, kept = int((found & keeps).sum()), int(keeps.sum())
    return Threshold(
        float(threshold),
        right / kept if kept else 0.0,
        right / gold_count,
        2 * right / (kept + gold_count),
    )


def _check(scores: np.ndarray, is_gold: np.ndarray, gold_count: int) -> np.ndarray:
    found = np.asarray(is_gold, bool)
    if len(found) != len(scores):
        raise ValueError(f"{len(scores)} scores, but is_gold has {len(found)}")
    if gold_count < max(1, found.sum()):
        raise ValueError(f"gold_count is {gold_count}, with {found.sum()} gold pairs here")
    return found
