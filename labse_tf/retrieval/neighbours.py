"""Exact nearest neighbours by inner product or by bits, in blocks, on all cores.

If there are many vectors, byte products (`codes`) first exclude pairs that cannot be near; the rest
are compared in float32. The result is the same as when all pairs are compared in float32.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from threading import Lock
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from labse_tf.progress import Progress
from labse_tf.retrieval import codes
from labse_tf.retrieval.vectors import ArrayLike

ROWS_PER_BLOCK = 4096
COLUMNS_PER_BLOCK = 2048
_RESCORED_PER_BLOCK = 1024
# Coding fewer vectors is not worth the time.
FEWEST_CODED = 16384

# Greater than any index, so that an empty entry loses every tie.
_NONE = np.iinfo(np.int64).max
_MOST_IN_A_GROUP = 32
_GROUPS_PER_NEIGHBOUR = 8
_FEWEST_VECTORS = 64
# So that their vectors stay in the processor's caches.
_PAIRS_AT_ONCE = 1024
# Float32 inner products summed in another order differ by less.
_ROUNDING = 1e-5


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


class Search:
    """The vectors of two sides, and their nearest neighbours, which searches fill in.

    Attributes:
      sources: float `[n, dim]`.
      targets: float `[m, dim]`.
      forward: targets near to each source, `[n, k]`, or all `[n, m]` if there are fewer than k.
      backward: sources near to each target, `[m, k]`, likewise; None if they are not wanted.
    """

    def __init__(
        self, sources: ArrayLike, targets: ArrayLike, k: int, *, both: bool = True
    ) -> None:
        """Raises ValueError if k is less than 1, a side is empty, or the dimensions differ."""
        if k < 1:
            raise ValueError(f"k is {k}, not 1 or more")
        n, m = sources.shape[0], targets.shape[0]
        if not m or (both and not n):
            raise ValueError("there are no candidates")
        if sources.shape[1] != targets.shape[1]:
            raise ValueError(f"dimensions differ: {sources.shape[1]} and {targets.shape[1]}")
        self.sources, self.targets = sources, targets
        self.forward = Neighbours.none_yet(n, min(k, m))
        self.backward = Neighbours.none_yet(m, min(k, n)) if both else None

    @property
    def directions(self) -> tuple[tuple[ArrayLike, ArrayLike, Neighbours], ...]:
        """Queries, candidates and neighbours, forward and backward."""
        forward = self.sources, self.targets, self.forward
        return forward, (self.targets, self.sources, self.backward)


def nearest(queries: ArrayLike, candidates: ArrayLike, k: int) -> Neighbours:
    """Returns the k nearest candidates of each query, or all; arguments are as of `Search`."""
    search = Search(queries, candidates, k, both=False)
    list(search_blocks(search))
    return search.forward


def nearest_both(sources: ArrayLike, targets: ArrayLike, k: int) -> tuple[Neighbours, Neighbours]:
    """Returns the k nearest targets of each source and the k nearest sources of each target.

    Every inner product is computed once and used in both directions, with progress on stderr.
    Arguments and errors are as of `Search`.
    """
    search, done = Search(sources, targets, k), 0
    with Progress("search", total=sources.shape[0], unit="sentence") as progress:
        for end in search_blocks(search):
            progress.update(end - done)
            done = end
    return search.forward, search.backward


def search_blocks(
    search: Search, *, start: int = 0, rows: int = ROWS_PER_BLOCK, columns: int = COLUMNS_PER_BLOCK
) -> Iterator[int]:
    """Searches block by block of sources; yields the number of finished sources after each.

    Then `forward` is final for the finished sources, and `backward` takes them into account, so
    that a search can be stopped, saved, and resumed from there: `start` is the first source that is
    not finished. Each thread holds a block of rows x columns float32.
    """
    sources, targets = search.sources, search.targets
    lock = Lock()
    with threads() as pool:
        coder = coded = None
        if targets.shape[0] >= FEWEST_CODED and start < sources.shape[0]:
            coder = codes.Coder(targets.shape[1])
            coded = codes.code_all(targets, coder.code_targets, pool)
        for row in range(start, sources.shape[0], rows):
            vectors = sources[row : row + rows]
            end = row + len(vectors)
            code = coder and coder.code_sources(vectors)
            own = Part(vectors, np.arange(row, end), search.forward, code)

            def run(first: int, own: Part = own) -> None:
                some = slice(first, first + columns)
                others = targets[some]
                places = np.arange(first, first + len(others))
                compare(own, Part(others, places, search.backward, coded and coded[some]), lock)

            list(pool.map(run, range(0, targets.shape[0], columns)))
            yield end


class Part(NamedTuple):
    """Some vectors of a side, to be compared with some of the other side.

    Attributes:
      vectors: float `[n, dim]`.
      places: ints `[n]`, their indices in the side.
      best: neighbours of the whole side found so far; None if no neighbours are wanted.
      codes: codes of the vectors; None to compare in float32 only.
    """

    vectors: ArrayLike
    places: np.ndarray
    best: Neighbours | None
    codes: codes.Codes | None


def compare(sources: Part, targets: Part, lock: Lock, *, likely: bool = False) -> None:
    """Compares all sources with all targets, and inserts the neighbours found.

    Another thread may insert neighbours of the same sources, with the same lock, but not of the
    same targets. For `likely` see `codes.bounds`.
    """
    sides = sources, targets
    # Limits only rise: if another thread raises them meanwhile, a few candidates are too many.
    limits = [side.best and side.best.similarities[side.places, -1] for side in sides]
    # Codes need the similarity of the k-th neighbour of each query to compare with.
    coded = sources.codes and targets.codes
    if coded and all(limit is None or np.isfinite(limit).all() for limit in limits):
        found = codes.products(sources.codes.numbers, targets.codes.numbers)
        unit = sources.codes.step * targets.codes.step
        bounds = codes.bounds(sources.codes, targets.codes, likely=likely)
        near = [
            None if limit is None else _reaching(one, (limit - off - _ROUNDING) / unit)
            for one, limit, off in zip((found, found.T), limits, bounds, strict=True)
        ]
    else:
        found = products(sources.vectors[:], targets.vectors[:])
        near = [
            side.best and _near(one, limit, side.best.indices.shape[1])
            for side, one, limit in zip(sides, (found, found.T), limits, strict=True)
        ]
    for own, others, pairs, limit, held in zip(
        sides, sides[::-1], near, limits, (lock, nullcontext()), strict=True
    ):
        if own.best:
            rows, columns = pairs
            values = exact_products(own.vectors, others.vectors, rows, columns)
            kept = values >= limit[rows]
            with held:
                places = own.places[rows[kept]], others.places[columns[kept]]
                insert(own.best, *places, values[kept])


def _near(found: np.ndarray, limits: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns row and column of the products `[n, m]` that may be among the k best of their row.

    One pass computes the maximum of each group of columns. The k-th highest maximum is a limit, as
    is `limits` `[n]`, the k-th best of earlier blocks. Only groups that reach both are examined.
    """
    size = min(_MOST_IN_A_GROUP, found.shape[1] // (_GROUPS_PER_NEIGHBOUR * k))
    highest, size = _highest_of_groups(found, size)
    last = highest.shape[1] - k
    if last >= 0:
        limits = np.maximum(limits, np.partition(highest, last, axis=1)[:, last] - _ROUNDING)
    return _reaching(found, limits - _ROUNDING, (highest, size))


def _reaching(
    found: np.ndarray, limits: np.ndarray, groups: tuple[np.ndarray, int] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns row and column of the products `[n, m]` that reach the limit `[n]` of their row.

    `groups` is the result of `_highest_of_groups`, if known.
    """
    highest, size = groups or _highest_of_groups(found, _MOST_IN_A_GROUP)
    count = highest.shape[1]
    limits = limits[:, np.newaxis]
    rows, group = np.nonzero(highest >= limits)
    columns = group[:, np.newaxis] + count * np.arange(size)
    reached, place = np.nonzero(found[rows[:, np.newaxis], columns] >= limits[rows])
    rest_rows, rest = np.nonzero(found[:, count * size :] >= limits)
    return (
        np.concatenate([rows[reached], rest_rows]),
        np.concatenate([columns[reached, place], rest + count * size]),
    )


def _highest_of_groups(found: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Returns `[n, groups]`, the maximum of each group of columns, and the size of the groups."""
    # Group g has the columns g, g + groups, g + 2 groups, ...: the fastest to read. Columns after
    # the last multiple of the size are in no group.
    size = max(1, min(size, found.shape[1]))
    groups = found.shape[1] // size
    return found[:, : groups * size].reshape(-1, size, groups).max(axis=1), size


def insert(best: Neighbours, rows: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Updates `best` with new neighbours: queries, candidates and inner products, `[found]` each.

    None of them is in `best` yet; the k best are kept.
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


def products(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Returns `rows @ columns.T`, float32; equal vectors have equal products at any position.

    BLAS uses other kernels for few vectors, which round differently, so few vectors are padded.
    """

    def pad(vectors: np.ndarray) -> np.ndarray:
        missing = max(0, _FEWEST_VECTORS - len(vectors))
        vectors = np.asarray(vectors, np.float32)
        return np.pad(vectors, ((0, missing), (0, 0))) if missing else vectors

    return (pad(rows) @ pad(columns).T)[: len(rows), : len(columns)]


def exact_products(
    own: ArrayLike, others: ArrayLike, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Returns float32 `[pairs]`, products of rows of `[n, dim]` and `[m, dim]`, few at a time."""
    values = np.empty(len(rows), np.float32)
    for first in range(0, len(rows), _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        np.einsum("nd,nd->n", own[rows[part]], others[columns[part]], out=values[part])
    return values


def search_bits(search: Search, *, dim: int, start: int = 0) -> Iterator[int]:
    """Same as `search_blocks` for vectors of `dim` bits; queries are the sources, then the targets.

    Sources and targets are uint8 `[n, ceil(dim / 8)]` and `[m, ceil(dim / 8)]`. Processors count
    the bits that differ in whole words, several times as fast as products of the same vectors.
    Similarities are cosines of vectors of 1 and -1: 1 minus twice the share of bits that differ.
    """
    # Imported here because it takes a second.
    import faiss

    first = 0
    for own, others, best in search.directions:
        for place in range(max(start - first, 0), len(own), ROWS_PER_BLOCK):
            queries = own[place : place + ROWS_PER_BLOCK]
            rows = slice(place, place + len(queries))
            distances, indices = faiss.knn_hamming(queries, others, best.indices.shape[1])
            best.similarities[rows] = 1 - 2 * distances.astype(np.float32) / dim
            best.indices[rows] = indices
            yield first + place + len(queries)
        first += len(own)


def rescore(
    candidates: np.ndarray,
    own: ArrayLike,
    others: ArrayLike,
    k: int,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Neighbours:
    """Returns the k nearest (or all) of the candidates of each query, by exact inner products.

    `candidates` are ints `[n, candidates]`, indices in `others`; `own` and `others` the exact
    vectors, float `[n, dim]` and `[m, dim]`, of which only candidates are read. `on_progress` is
    called with the number of queries done since the last call.
    """
    count, per_query = candidates.shape
    best = Neighbours.none_yet(count, min(k, per_query))

    def fill(start: int) -> None:
        indices = candidates[start : start + _RESCORED_PER_BLOCK]
        end = start + len(indices)
        rows = np.repeat(np.arange(start, end), per_query)
        similarities = exact_products(own, others, rows, indices.ravel()).reshape(indices.shape)
        order = np.lexsort((indices, -similarities), axis=1)[:, :k]
        best.similarities[start:end] = np.take_along_axis(similarities, order, axis=1)
        best.indices[start:end] = np.take_along_axis(indices, order, axis=1)
        on_progress(len(indices))

    with threads() as pool:
        list(pool.map(fill, range(0, count, _RESCORED_PER_BLOCK)))
    return best


@contextmanager
def threads() -> Iterator[ThreadPoolExecutor]:
    """Yields a pool with one thread per core; BLAS has one, so that selecting runs in parallel."""
    count = len(os.sched_getaffinity(0))
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield pool
