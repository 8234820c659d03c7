"""Exact nearest neighbours by inner product, in blocks, on all cores.

Of many vectors, products of bytes (`codes`) tell first which pairs cannot be near; what is left is
compared in float32. So the result is that of comparing all in float32.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from labse_tf.retrieval import codes
from labse_tf.retrieval.array_like import ArrayLike

ROWS_A_BLOCK = 4096
COLUMNS_A_BLOCK = 2048
# Above any place: what is not found yet loses every tie.
_NONE = np.iinfo(np.int64).max
_MOST_IN_A_GROUP = 32
_GROUPS_A_NEIGHBOUR = 8
_FEWEST_VECTORS = 64
# Fewer are not worth the coding.
FEWEST_CODED = 16384
# Their vectors stay in the processor's caches.
_PAIRS_AT_ONCE = 1024
# Products of float32 in another order differ by less.
_ROUNDING = 1e-5


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """The nearest of each query, nearest first; of equally near ones the lower place.

    Attributes:
      similarities: float32 `[n, k]`, inner products.
      indices: int64 `[n, k]`, places among the candidates.
    """

    similarities: np.ndarray
    indices: np.ndarray

    @classmethod
    def none_yet(cls, count: int, k: int) -> Neighbours:
        """Returns neighbours of `count` queries before the search."""
        return cls(np.full((count, k), -np.inf, np.float32), np.full((count, k), _NONE))

    def __getitem__(self, which: slice | np.ndarray) -> Neighbours:
        return Neighbours(self.similarities[which], self.indices[which])


def nearest(queries: ArrayLike, candidates: ArrayLike, k: int) -> Neighbours:
    """Returns the k nearest candidates of each query, of all there are if these are fewer.

    Args:
      queries: float `[n, dim]`.
      candidates: float `[m, dim]`.
      k: how many, 1 or more.

    Raises:
      ValueError: if k is less than 1, there is no candidate, or the dimensions differ.
    """
    k = check_search(queries, candidates, k)
    found = Neighbours.none_yet(queries.shape[0], k)
    for _ in search_blocks(queries, candidates, found, None):
        pass
    return found


def nearest_both(
    sources: ArrayLike,
    targets: ArrayLike,
    k: int,
    *,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> tuple[Neighbours, Neighbours]:
    """Returns the k nearest targets of each source and the k nearest sources of each target.

    Every inner product is computed once and serves both.

    Args:
      sources: float `[n, dim]`.
      targets: float `[m, dim]`.
      k: as `nearest`; each direction has at most as many as there are candidates.
      on_progress: called with the number of sources done since the last call.

    Raises:
      ValueError: as `nearest`.
    """
    forward = Neighbours.none_yet(sources.shape[0], check_search(sources, targets, k))
    backward = Neighbours.none_yet(targets.shape[0], check_search(targets, sources, k))
    start = 0
    for end in search_blocks(sources, targets, forward, backward):
        on_progress(end - start)
        start = end
    return forward, backward


def check_search(queries: ArrayLike, candidates: ArrayLike, k: int) -> int:
    """Returns k, or the number of candidates if these are fewer; ValueError as `nearest`."""
    if k < 1:
        raise ValueError(f"k is {k}, not 1 or more")
    if not candidates.shape[0]:
        raise ValueError("there are no candidates")
    if queries.shape[1] != candidates.shape[1]:
        raise ValueError(f"dimensions differ: {queries.shape[1]} and {candidates.shape[1]}")
    return min(k, candidates.shape[0])


def search_blocks(
    sources: ArrayLike,
    targets: ArrayLike,
    forward: Neighbours,
    backward: Neighbours | None,
    *,
    start: int = 0,
    rows: int = ROWS_A_BLOCK,
    columns: int = COLUMNS_A_BLOCK,
) -> Iterator[int]:
    """Searches with a block of sources after the other; yields up to which it is done.

    After each step `forward` is final up to there and `backward` knows these sources, so that a
    search may be stopped, kept, and continued from there.

    Args:
      sources: float `[n, dim]`.
      targets: float `[m, dim]`.
      forward: of the sources, filled in place.
      backward: of the targets, likewise; None if they are not wanted.
      start: the first source that is not done.
      rows: sources in a block.
      columns: targets in a block; each thread holds a block of rows x columns float32.
    """
    places = range(0, targets.shape[0], columns)
    with threads() as pool:
        coder = coded = None
        if targets.shape[0] >= FEWEST_CODED and start < sources.shape[0]:
            coder = codes.Coder(targets.shape[1])
            coded = codes.code_all(targets, coder.code_targets, pool)
        while start < sources.shape[0]:
            end = min(start + rows, sources.shape[0])
            vectors = sources[start:end]
            own = Part(vectors, forward[start:end], coder and coder.code_sources(vectors))
            search = functools.partial(_search_block, own, start, targets, coded, backward, Lock())
            list(pool.map(lambda at, s=search: s(slice(at, at + columns)), places))
            start = end
            yield end


def _search_block(
    own: Part,
    start: int,
    targets: ArrayLike,
    coded: codes.Codes | None,
    backward: Neighbours | None,
    lock: Lock,
    columns: slice,
) -> None:
    """Compares sources from `start` on with some targets, and keeps what is near."""
    others = Part(targets[columns], backward and backward[columns], coded and coded[columns])
    ahead, back = compare(own, others)
    with lock:
        insert(own.best, ahead.own, ahead.others + columns.start, ahead.similarities)
    if back:
        insert(others.best, back.own, back.others + start, back.similarities)


@contextmanager
def threads() -> Iterator[ThreadPoolExecutor]:
    """A thread for each core, with products of one thread each: selection is parallel too."""
    count = len(os.sched_getaffinity(0))
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield pool


def products(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Returns `rows @ columns.T`, float32; equal vectors have equal products wherever they are.

    BLAS has other kernels for few vectors, which round otherwise. So there are never few.
    """
    padded = _at_least(rows) @ _at_least(columns).T
    return padded[: len(rows), : len(columns)]


def _at_least(vectors: np.ndarray) -> np.ndarray:
    if len(vectors) >= _FEWEST_VECTORS:
        return np.asarray(vectors, np.float32)
    padded = np.zeros((_FEWEST_VECTORS, vectors.shape[1]), np.float32)
    padded[: len(vectors)] = vectors
    return padded


@dataclasses.dataclass(frozen=True)
class Part:
    """Some vectors of a side, to be compared with some of the other side.

    Attributes:
      vectors: float `[n, dim]`.
      best: what they have found so far; None if nothing is looked for.
      codes: of the vectors; None to compare in float32 alone.
    """

    vectors: ArrayLike
    best: Neighbours | None
    codes: codes.Codes | None


class Candidates(NamedTuple):
    """Places `[pairs]` in one part and in the other, and float32 inner products."""

    own: np.ndarray
    others: np.ndarray
    similarities: np.ndarray


def compare(
    sources: Part, targets: Part, *, bounds: Callable = codes.bounds
) -> tuple[Candidates, Candidates | None]:
    """Returns what may be near: to the sources, and to the targets if that is looked for.

    Each source with its targets, and each target with its sources. Another thread may raise what
    was found so far meanwhile, which does no harm: limits only rise.

    Args:
      sources: some of a side.
      targets: some of the other.
      bounds: how far products of codes may be off, `codes.bounds` or `codes.likely_bounds`.
    """
    parts = [part for part in (sources, targets) if part.best is not None]
    if sources.codes and targets.codes and all(_is_limited(part.best) for part in parts):
        places = _near_by_codes(sources, targets, bounds)
    else:
        found = products(sources.vectors[:], targets.vectors[:])
        places = [
            part.best and near(one, part.best, tolerance=_ROUNDING)[:2]
            for part, one in ((sources, found), (targets, found.T))
        ]
    ahead = _exactly(sources, targets, *places[0])
    return ahead, _exactly(targets, sources, *places[1]) if targets.best else None


def _near_by_codes(sources: Part, targets: Part, bounds: Callable) -> list:
    """As rows and columns of `near`, of the products and of their transpose."""
    found = codes.products(sources.codes.numbers, targets.codes.numbers)
    unit = sources.codes.step * targets.codes.step
    lost = bounds(sources.codes, targets.codes)
    return [
        part.best and reaching(one, (part.best.similarities[:, -1] - off - _ROUNDING) / unit)
        for part, one, off in zip((sources, targets), (found, found.T), lost, strict=True)
    ]


def _is_limited(best: Neighbours) -> bool:
    """Whether all have k neighbours, so that there is something to be nearer than."""
    return bool(np.isfinite(best.similarities[:, -1]).all())


def _exactly(own: Part, others: Part, rows: np.ndarray, columns: np.ndarray) -> Candidates:
    """Returns of the pairs those that reach the k best, with their products."""
    values = np.empty(len(rows), np.float32)
    for first in range(0, len(rows), _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        vectors = own.vectors[rows[part]], others.vectors[columns[part]]
        np.einsum("nd,nd->n", *vectors, out=values[part])
    kept = values >= own.best.similarities[rows, -1]
    return Candidates(rows[kept], columns[kept], values[kept])


def near(
    found: np.ndarray, best: Neighbours, *, tolerance: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns row, column and value of the products that may be among the k best of their row.

    One pass takes the highest of each group of columns. The k-th of these is a limit, as is the
    k-th best of the blocks before, and only groups that reach both are looked into.

    Args:
      found: `[n, m]`, products.
      best: `[n, k]`, what was found before.
      tolerance: by how much products may be off.
    """
    k = best.similarities.shape[1]
    size = min(_MOST_IN_A_GROUP, found.shape[1] // (_GROUPS_A_NEIGHBOUR * k))
    highest, size = _highest_of_groups(found, size)
    limits = best.similarities[:, -1]
    last = highest.shape[1] - k
    if last >= 0:
        limits = np.maximum(limits, np.partition(highest, last, axis=1)[:, last] - tolerance)
    rows, columns = reaching(found, limits - tolerance, (highest, size))
    return rows, columns, found[rows, columns]


def reaching(
    found: np.ndarray, limits: np.ndarray, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Returns row and column of the products that reach the limit of their row.

    Args:
      found: `[n, m]`, products.
      limits: `[n]`.
      groups: what `_highest_of_groups` gives, if it is known.
    """
    highest, size = _highest_of_groups(found, _MOST_IN_A_GROUP) if groups is None else groups
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
    """Returns `[n, groups]`, the highest of each group of columns, and the size of the groups."""
    # Group g has the columns g, g + groups, g + 2 groups, ...: the fastest to read. What is left
    # behind the last multiple of the size is in none.
    size = max(1, min(size, found.shape[1]))
    groups = found.shape[1] // size
    return found[:, : groups * size].reshape(-1, size, groups).max(axis=1), size


def insert(best: Neighbours, rows: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Keeps in `best` the k best of what it has and of the new, none of which it has yet.

    Args:
      best: `[n, k]`.
      rows: `[found]`, whose neighbour it is.
      places: `[found]`, its place among all candidates.
      values: `[found]`, the products.
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
