"""Margin scores: how much nearer two sentences are to each other than to their neighbours."""

from __future__ import annotations

import numpy as np

MARGINS = ("absolute", "distance", "ratio")


def margin_scores(
    similarities: np.ndarray,
    source_means: np.ndarray,
    target_means: np.ndarray,
    *,
    margin: str,
) -> np.ndarray:
    """Returns the scores of pairs (Artetxe and Schwenk 2019, arXiv 1811.01136, equations 1 and 2).

    With the similarity a of a pair and the average b of its two means, `absolute` is a, `distance`
    a - b and `ratio` a / b. If b is not above 0, the ratio is -inf: even the nearest neighbours
    have nothing in common.

    Args:
      similarities: `[...]` floats, cosines of source and target.
      source_means: for each pair, the mean cosine of the source and its k nearest targets; its
        shape and that of `target_means` broadcast to that of `similarities`.
      target_means: the mean cosine of the target and its k nearest sources.
      margin: one of MARGINS.

    Raises:
      ValueError: if `margin` is not one of MARGINS.
    """
    if margin not in MARGINS:
        raise ValueError(f"margin is {margin!r}, not one of {', '.join(MARGINS)}")
    if margin == "absolute":
        return np.array(similarities)
    means = np.broadcast_to((source_means + target_means) / 2, np.shape(similarities))
    if margin == "distance":
        return similarities - means
    scores = np.full_like(similarities, -np.inf)
    return np.divide(similarities, means, out=scores, where=means > 0)
