"""Pairs of translations from nearest neighbours in both directions: scores, choice, threshold."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from labse_tf.retrieval.neighbours import Neighbours

MARGINS = ("absolute", "distance", "ratio")
RETRIEVALS = ("forward", "backward", "intersection", "max")


def margin_scores(
    similarities: np.ndarray, source_means: np.ndarray, target_means: np.ndarray, *, margin: str
) -> np.ndarray:
    """Returns the scores of pairs (Artetxe and Schwenk 2019, arXiv 1811.01136, equations 1 and 2).

    With the similarity a of a pair and the average b of its two means, `absolute` is a, `distance`
    a - b and `ratio` a / b. If b is not above 0, the ratio is -inf: even the nearest neighbours
    have nothing in common.

    Args:
      similarities: `[...]` floats, cosines of source and target.
      source_means: the mean cosine of each source and its k nearest targets; broadcasts to `[...]`.
      target_means: the mean cosine of each target and its k nearest sources, likewise.
      margin: one of MARGINS; anything else is a ValueError.
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


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Mined pairs, the highest score first; on ties, the lower source first, then the lower target.

    Attributes:
      sources: int64 `[n]`, indices of the sources.
      targets: int64 `[n]`, indices of the targets.
      scores: float32 `[n]`.
    """

    sources: np.ndarray
    targets: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, which: slice | np.ndarray) -> Pairs:
        return Pairs(self.sources[which], self.targets[which], self.scores[which])


def mine_pairs(
    forward: Neighbours, backward: Neighbours, *, margin: str = "ratio", retrieval: str = "max"
) -> Pairs:
    """Returns the pairs found by a retrieval method of Artetxe and Schwenk 2019 (section 3.2).

    `forward` takes for each source the neighbour with the best score (on ties the more similar one,
    then the lower index), `backward` likewise for each target; `intersection` takes the pairs found
    by both. `max` goes through the pairs found by either, by descending score, and keeps a pair if
    neither of its sentences is in a pair kept before, as LASER.

    Args:
      forward: the k nearest targets of each source.
      backward: the k nearest sources of each target.
      margin: one of MARGINS; anything else is a ValueError.
      retrieval: one of RETRIEVALS, likewise.
    """
    if retrieval not in RETRIEVALS:
        raise ValueError(f"retrieval is {retrieval!r}, not one of {', '.join(RETRIEVALS)}")
    means = [found.similarities.mean(axis=1) for found in (forward, backward)]
    targets, scores = _best_neighbours(forward, *means, margin)
    ahead = Pairs(np.arange(len(targets)), targets, scores)
    sources, scores = _best_neighbours(backward, *means[::-1], margin)
    back = Pairs(sources, np.arange(len(sources)), scores)
    if retrieval == "intersection":
        ahead = ahead[back.sources[ahead.targets] == ahead.sources]
    elif retrieval == "max":
        new = back[ahead.targets[back.sources] != back.targets]
        both = zip(vars(ahead).values(), vars(new).values(), strict=True)
        ahead = Pairs(*map(np.concatenate, both))
    pairs = back if retrieval == "backward" else ahead
    pairs = pairs[np.lexsort((pairs.targets, pairs.sources, -pairs.scores))]
    return _one_to_one(pairs, len(targets), len(sources)) if retrieval == "max" else pairs


def _best_neighbours(
    neighbours: Neighbours, own_means: np.ndarray, other_means: np.ndarray, margin: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the neighbour with the best score for each row, `[n]`, and its score."""
    # The average of the two means does not depend on which side is the source.
    means = own_means[:, np.newaxis], other_means[neighbours.indices]
    scores = margin_scores(neighbours.similarities, *means, margin=margin)
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    return neighbours.indices[rows, best], scores[rows, best]


def _one_to_one(pairs: Pairs, source_count: int, target_count: int) -> Pairs:
    source_taken, target_taken = bytearray(source_count), bytearray(target_count)
    kept, rows = [], zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)
    for place, (source, target) in enumerate(rows):
        if not (source_taken[source] or target_taken[target]):
            source_taken[source] = target_taken[target] = True
            kept.append(place)
    return pairs[np.array(kept, np.int64)]


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


def best_threshold(
    scores: np.ndarray, is_gold: np.ndarray, gold_count: int, threshold: float | None = None
) -> Threshold:
    """Returns the quality of pairs at a threshold; None: the one with the best F1.

    That is midway between the lowest score that is kept and the highest that is not; on ties it is
    the highest. `scores` `[n]` are in any order; `is_gold` `[n]` tells which pairs are gold pairs,
    each once at most; `gold_count` includes gold pairs that were not found.
    """
    found, ordered = np.asarray(is_gold, bool), np.asarray(scores, np.float64)
    if threshold is None:
        threshold = _best_score(ordered, found, gold_count) if len(ordered) else math.inf
    keeps = ordered >= threshold
    right, kept = int((found & keeps).sum()), int(keeps.sum())
    precision = right / kept if kept else 0.0
    f1 = 2 * right / (kept + gold_count)
    return Threshold(float(threshold), precision, right / gold_count, f1)


def _best_score(scores: np.ndarray, found: np.ndarray, gold_count: int) -> float:
    order = np.argsort(-scores, kind="stable")
    ordered, right = scores[order], np.cumsum(found[order])
    # 2PR / (P + R), with P = right / kept and R = right / gold_count.
    f1 = 2 * right / (np.arange(1, len(ordered) + 1) + gold_count)
    f1[:-1][ordered[:-1] == ordered[1:]] = -1
    last = int(f1.argmax())
    lowest, following = (float(ordered[at]) for at in (last, min(last + 1, len(ordered) - 1)))
    middle = (lowest + following) / 2
    return middle if middle > following else lowest
