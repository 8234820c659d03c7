"""Exact similarities for neighbours that were found with quantised vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labse_tf.retrieval.array_like import ArrayLike
from labse_tf.retrieval.best import Neighbours
from labse_tf.retrieval.comparing import exact_products
from labse_tf.retrieval.neighbours import threads

# The nearest by binary vectors are among that many, mostly; docs/embedding.md has figures.
PER_NEIGHBOUR_IF_BINARY = 16
PER_NEIGHBOUR = 2
_ROWS_PER_BLOCK = 1024


def rescore(
    candidates: Neighbours,
    own: ArrayLike,
    others: ArrayLike,
    k: int,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Neighbours:
    """Returns the k nearest of the candidates of each query, by exact inner products.

    Args:
      candidates: `[n, candidates]`; their similarities are not used.
      own: float `[n, dim]`, the exact vectors of the queries.
      others: float `[m, dim]`, those of the candidates; only these are read.
      k: the number of neighbours; all candidates if there are fewer.
      on_progress: called with the number of queries done since the last call.
    """
    count, per_query = candidates.indices.shape
    best = Neighbours.none_yet(count, min(k, per_query))

    def fill(start: int) -> None:
        indices = candidates.indices[start : start + _ROWS_PER_BLOCK]
        rows = np.repeat(np.arange(start, start + len(indices)), per_query)
        similarities = exact_products(own, others, rows, indices.ravel()).reshape(indices.shape)
        # Nearest first; on ties, the lower index first.
        order = np.lexsort((indices, -similarities), axis=1)[:, :k]
        part = best[start : start + len(indices)]
        part.similarities[:] = np.take_along_axis(similarities, order, axis=1)
        part.indices[:] = np.take_along_axis(indices, order, axis=1)
        on_progress(len(indices))

    with threads() as pool:
        list(pool.map(fill, range(0, count, _ROWS_PER_BLOCK)))
    return best
