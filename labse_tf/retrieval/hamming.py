"""Exact nearest neighbours of binary vectors, by the number of bits that differ.

Processors count the bits of whole words. This is several times as fast as products of the same
vectors, and it hardly matters how many neighbours are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from labse_tf.retrieval.best import Neighbours

_ROWS_PER_BLOCK = 4096


def nearest_bits(queries: np.ndarray, candidates: np.ndarray, k: int, *, dim: int) -> Neighbours:
    """Returns the k nearest candidates of each query; on ties, the lower index is nearer.

    Similarities are cosines of vectors of 1 and -1: 1 minus twice the share of bits that differ.

    Args:
      queries: uint8 `[n, ceil(dim / 8)]`.
      candidates: uint8 `[m, ceil(dim / 8)]`.
      k: 1 to m.
      dim: the number of bits per vector.
    """
    # Imported here because it takes a second.
    import faiss

    distances, indices = faiss.knn_hamming(queries, candidates, k)
    return Neighbours(1 - 2 * distances.astype(np.float32) / dim, indices)


def search_bits(
    sources: np.ndarray,
    targets: np.ndarray,
    forward: Neighbours,
    backward: Neighbours,
    *,
    dim: int,
    start: int = 0,
) -> Iterator[int]:
    """Fills the neighbours of both sides; yields the number of finished queries after each block.

    Queries are the sources, then the targets.

    Args:
      sources: uint8 `[n, ceil(dim / 8)]`.
      targets: uint8 `[m, ceil(dim / 8)]`.
      forward: neighbours of the sources, filled in place.
      backward: neighbours of the targets, likewise.
      dim: the number of bits per vector.
      start: the first query that is not finished.
    """
    first = 0
    for own, others, best in ((sources, targets, forward), (targets, sources, backward)):
        k = best.indices.shape[1]
        for place in range(max(start - first, 0), len(own), _ROWS_PER_BLOCK):
            queries = own[place : place + _ROWS_PER_BLOCK]
            part = best[place : place + len(queries)]
            found = nearest_bits(queries, others, k, dim=dim)
            part.similarities[:], part.indices[:] = found.similarities, found.indices
            yield first + place + len(queries)
        first += len(own)
