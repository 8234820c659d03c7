"""The nearest neighbours found so far, and insertion of new ones."""

from __future__ import annotations

import dataclasses

import numpy as np

# Greater than any index, so that an empty entry loses every tie.
_NONE = np.iinfo(np.int64).max


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """The nearest neighbours of each query, nearest first; on ties, the lower index first.

    Attributes:
      similarities: float32 `[n, k]`, inner products.
      indices: int64 `[n, k]`, indices of the candidates.
    """

    similarities: np.ndarray
    indices: np.ndarray

    @classmethod
    def none_yet(cls, count: int, k: int) -> Neighbours:
        """Returns empty neighbours of `count` queries, for the start of a search."""
        return cls(np.full((count, k), -np.inf, np.float32), np.full((count, k), _NONE))

    def __getitem__(self, which: slice | np.ndarray) -> Neighbours:
        return Neighbours(self.similarities[which], self.indices[which])


def insert(best: Neighbours, rows: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Updates `best` with new neighbours, none of which it contains yet, and keeps the k best.

    Args:
      best: `[n, k]`.
      rows: `[found]`, the query of each new neighbour.
      places: `[found]`, the indices of the new neighbours among all candidates.
      values: `[found]`, the inner products.
    """
    k = best.similarities.shape[1]
    changed, new = np.unique(rows, return_inverse=True)
    all_rows = np.concatenate([np.repeat(np.arange(len(changed)), k), new])
    all_places = np.concatenate([best.indices[changed].ravel(), places])
    all_values = np.concatenate([best.similarities[changed].ravel(), values])
    order = np.lexsort((all_places, -all_values, all_rows))
    firsts = np.searchsorted(all_rows[order], np.arange(len(changed)))
    kept = order[firsts[:, np.newaxis] + np.arange(k)]
    best.similarities[changed] = all_values[kept]
    best.indices[changed] = all_places[kept]
