"""Neighbours from a search of each shard of the candidates, made one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labse_tf.retrieval.best import Neighbours


def merge_neighbours(
    parts: Sequence[Neighbours], offsets: Sequence[int], *, k: int | None = None
) -> Neighbours:
    """Returns the k nearest among all shards: what a search of the whole would have found.

    That holds since each of the k nearest of all is among the k nearest of its shard. Parts that
    are approximate make an approximate whole. Merging step by step, `[merged, next]` with the
    offsets `[0, next's]`, gives the same, so that a shard can be searched after the other.

    Args:
      parts: of the same n queries, a part a shard; each has its k nearest, or all if it has fewer.
        A place below 0 means that an index found no more.
      offsets: of each shard, the place of its first candidate among all of them.
      k: how many are wanted; None: as many as the part with the most has.

    Raises:
      ValueError: if there are no parts, not as many offsets, or the numbers of queries differ.
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
    # Nearest first, of equally near ones the lower place.
    order = np.lexsort((indices, -similarities), axis=1)[:, :k]
    return Neighbours(
        np.take_along_axis(similarities, order, axis=1), np.take_along_axis(indices, order, axis=1)
    )
