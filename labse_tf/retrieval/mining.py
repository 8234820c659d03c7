"""Extracts pairs of translations from the nearest neighbours in both directions."""

from __future__ import annotations

import dataclasses

import numpy as np

from labse_tf.retrieval.best import Neighbours
from labse_tf.retrieval.margin import margin_scores

RETRIEVALS = ("forward", "backward", "intersection", "max")


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
    forward: Neighbours,
    backward: Neighbours,
    *,
    margin: str = "ratio",
    retrieval: str = "max",
    one_to_one: bool | None = None,
) -> Pairs:
    """Returns the pairs found by a retrieval method of Artetxe and Schwenk 2019 (section 3.2).

    `forward` takes for each source the neighbour with the best score (on ties the more similar one,
    then the lower index), `backward` likewise for each target; `intersection` takes the pairs found
    by both, `max` those found by either. One-to-one matching then goes through the pairs by
    descending score and keeps a pair if neither of its sentences is in a pair kept before.

    Args:
      forward: the k nearest targets of each source.
      backward: the k nearest sources of each target.
      margin: one of MARGINS.
      retrieval: one of RETRIEVALS.
      one_to_one: by default only for `max`, as in LASER (`intersection` is always one-to-one).

    Raises:
      ValueError: if `margin` or `retrieval` is not one of these.
    """
    if retrieval not in RETRIEVALS:
        raise ValueError(f"retrieval is {retrieval!r}, not one of {', '.join(RETRIEVALS)}")
    source_means, target_means = (
        neighbours.similarities.mean(axis=1) for neighbours in (forward, backward)
    )
    targets, forward_scores = _best(forward, source_means, target_means, margin)
    sources, backward_scores = _best(backward, target_means, source_means, margin)
    ahead = Pairs(np.arange(len(targets)), targets, forward_scores)
    back = Pairs(sources, np.arange(len(sources)), backward_scores)
    pairs = _sorted(_chosen(ahead, back, retrieval))
    if one_to_one if one_to_one is not None else retrieval == "max":
        pairs = _one_to_one(pairs, len(targets), len(sources))
    return pairs


def _best(
    neighbours: Neighbours, own_means: np.ndarray, other_means: np.ndarray, margin: str
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the neighbour with the best score for each row, `[n]`, and its score."""
    # The average of the two means does not depend on which side is the source.
    scores = margin_scores(
        neighbours.similarities,
        own_means[:, np.newaxis],
        other_means[neighbours.indices],
        margin=margin,
    )
    best = scores.argmax(axis=1)[:, np.newaxis]
    return tuple(
        np.take_along_axis(values, best, axis=1)[:, 0] for values in (neighbours.indices, scores)
    )


def _chosen(ahead: Pairs, back: Pairs, retrieval: str) -> Pairs:
    if retrieval == "forward":
        return ahead
    if retrieval == "backward":
        return back
    agrees = back.sources[ahead.targets] == ahead.sources
    if retrieval == "intersection":
        return ahead[agrees]
    new = ahead.targets[back.sources] != back.targets
    return Pairs(
        *(
            np.concatenate([getattr(ahead, field.name), getattr(back, field.name)[new]])
            for field in dataclasses.fields(Pairs)
        )
    )


def _sorted(pairs: Pairs) -> Pairs:
    return pairs[np.lexsort((pairs.targets, pairs.sources, -pairs.scores))]


def _one_to_one(pairs: Pairs, source_count: int, target_count: int) -> Pairs:
    source_taken, target_taken = bytearray(source_count), bytearray(target_count)
    kept = []
    for place, (source, target) in enumerate(
        zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)
    ):
        if not (source_taken[source] or target_taken[target]):
            source_taken[source] = target_taken[target] = True
            kept.append(place)
    return pairs[np.array(kept, np.int64)]
