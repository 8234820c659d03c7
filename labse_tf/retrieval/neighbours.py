"""Exact nearest neighbours by inner product, in blocks, on all cores.

If there are many vectors, byte products (`codes`) first exclude pairs that cannot be near; the rest
are compared in float32. The result is the same as when all pairs are compared in float32.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import threadpool_limits

from labse_tf.retrieval import codes
from labse_tf.retrieval.array_like import ArrayLike
from labse_tf.retrieval.best import Neighbours, insert
from labse_tf.retrieval.comparing import Part, compare

ROWS_PER_BLOCK = 4096
COLUMNS_PER_BLOCK = 2048
# Coding fewer vectors is not worth the time.
FEWEST_CODED = 16384


def nearest(queries: ArrayLike, candidates: ArrayLike, k: int) -> Neighbours:
    """Returns the k nearest candidates of each query, or all of them if there are fewer.

    Args:
      queries: float `[n, dim]`.
      candidates: float `[m, dim]`.
      k: the number of neighbours, 1 or more.

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

    Every inner product is computed once and used in both directions.

    Args:
      sources: float `[n, dim]`.
      targets: float `[m, dim]`.
      k: as `nearest`, limited in each direction to the number of candidates.
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
    """Returns k, or the number of candidates if that is smaller; raises ValueError as `nearest`."""
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
    rows: int = ROWS_PER_BLOCK,
    columns: int = COLUMNS_PER_BLOCK,
) -> Iterator[int]:
    """Searches block by block of sources; yields the number of finished sources after each.

    Then `forward` is final for the finished sources, and `backward` takes them into account, so
    that a search can be stopped, saved, and resumed from there.

    Args:
      sources: float `[n, dim]`.
      targets: float `[m, dim]`.
      forward: neighbours of the sources, filled in place.
      backward: neighbours of the targets, likewise; None if they are not wanted.
      start: the first source that is not finished.
      rows: sources per block.
      columns: targets per block; each thread holds a block of rows x columns float32.
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
    """Compares the sources from `start` on with some targets, and stores the neighbours found."""
    others = Part(targets[columns], backward and backward[columns], coded and coded[columns])
    ahead, back = compare(own, others)
    with lock:
        insert(own.best, ahead.own, ahead.others + columns.start, ahead.similarities)
    if back:
        insert(others.best, back.own, back.others + start, back.similarities)


@contextmanager
def threads() -> Iterator[ThreadPoolExecutor]:
    """Yields a pool with one thread per core and limits BLAS to one thread.

    So selecting neighbours runs in parallel, not only the products.
    """
    count = len(os.sched_getaffinity(0))
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        yield pool
