"""Merges the neighbours found in separate shards of the candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labse_tf.retrieval.best import Neighbours


def merge_neighbours(
    parts: Sequence[Neighbours], offsets: Sequence[int], *, k: int | None = None
) -> Neighbours:
    """Returns the k nearest among all shards: the same as a search over all candidates.

    This holds because each of the k nearest overall is among the k nearest of its shard. If parts
    are approximate, so is the result. Merging step by step, `[merged, next]` with the offsets
    `[0, next's]`, gives the same result, so shards can be searched one after the other.

    Args:
      parts: one per shard, for the same n queries; each has the k nearest of its shard, or all if
        it has fewer. An index below 0 means that no more were found.
      offsets: for each shard, the index of its first candidate among all of them.
      k: number of neighbours; None: as many as the part with the most has.

    Raises:
      ValueError: if there are no parts, or the numbers of offsets or of queries do not match.
    """
    if not parts or len(parts) != len(offsets):
        raise ValueError(f"{len(parts)} parts, {len(offsets)} offsets")
    if len({len(part.indices) for part in parts}) > 1:
        counts = ", ".join(str(len(part.indices)) for part in parts)
        raise ValueError(f"the parts are of different numbers of queries: {counts}")
    k = max(part.indices.shape[1] for part in parts) if k is None else k
    similarities = np.concatenate([part.similarities for part in parts], axis=1)
    indices = np.concatenate(
        [
            np.where(part.indices < 0, part.indices, part.indices + offset)
            for part, offset in zip(parts, offsets, strict=True)
        ],
        axis=1,
    )
    # Nearest first; on ties, the lower index first.
    order = np.lexsort((indices, -similarities), axis=1)[:, :k]
    return Neighbours(
        np.take_along_axis(similarities, order, axis=1), np.take_along_axis(indices, order, axis=1)
    )
