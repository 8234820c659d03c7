"""Approximate nearest neighbours in both directions, for more vectors than can all be compared.

An inverted file (Sivic and Zisserman 2003; faiss's IVF-Flat) of both sides: targets are sorted into
lists by their nearest centroid, and a source is compared only with the lists of its nearest
centroids. All sources of a list are compared with it at once, by one matrix product that serves
both directions. This is faster than querying an index for one source after the other, and needs no
copy of the vectors in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import faiss
import numpy as np
import scipy.sparse

from labse_tf.progress import Progress
from labse_tf.retrieval.codes import Coder, code_all
from labse_tf.retrieval.neighbours import (
    FEWEST_CODED,
    Neighbours,
    Part,
    Search,
    compare,
    nearest,
    products,
    threads,
)
from labse_tf.retrieval.vectors import ArrayLike, Selection

_LISTS_PER_ROOT = 4
_TRAINING_VECTORS_PER_LIST = 64
_TRAINING_ITERATIONS = 8
_ROWS_PER_BLOCK = 4096
_LISTS_AT_ONCE = 16
_SAMPLE = 1000
_SEED = 0


class Lists(NamedTuple):
    """Lists of targets.

    Attributes:
      sources: int32 `[n, probes]`, the lists that each source is compared with, the nearest first.
      targets: int32 `[m]`, the list that each target is in.
      count: the number of lists.
    """

    sources: np.ndarray
    targets: np.ndarray
    count: int


def default_lists(sources: int, targets: int) -> int:
    """Returns the power of 2 nearest to 4 times the square root of the smaller side."""
    return 2 ** round(math.log2(_LISTS_PER_ROOT * math.sqrt(min(sources, targets))))


def train_centroids(sources: ArrayLike, targets: ArrayLike, lists: int) -> np.ndarray:
    """Returns float32 `[lists, dim]` by spherical k-means (faiss) on a sample of both sides."""
    wanted = lists * _TRAINING_VECTORS_PER_LIST // 2
    sample = np.concatenate([side[_sample(side, wanted, _SEED)] for side in (sources, targets)])
    kmeans = faiss.Kmeans(
        sample.shape[1],
        min(lists, len(sample)),
        niter=_TRAINING_ITERATIONS,
        spherical=True,
        seed=_SEED,
        min_points_per_centroid=1,
        max_points_per_centroid=2 * _TRAINING_VECTORS_PER_LIST,
    )
    kmeans.train(np.asarray(sample, np.float32))
    return kmeans.centroids


def make_lists(
    sources: ArrayLike,
    targets: ArrayLike,
    centroids: np.ndarray,
    k: int,
    *,
    recall: float,
) -> Lists:
    """Sorts targets `[m, dim]` into lists and chooses the lists of each source `[n, dim]`.

    They are enough to find the share `recall`, 0 to 1, of the k neighbours, and of the nearest
    alone. Progress is on stderr.
    """
    total = sources.shape[0] + targets.shape[0]
    with Progress("assign to lists", total=total, unit="vector") as progress:
        of_targets = _assign(targets, centroids, 1, progress)[:, 0]
        probes = _probes(sources, targets, of_targets, centroids, k, recall)
        of_sources = _assign(sources, centroids, probes, progress)
    return Lists(of_sources, of_targets, len(centroids))


def search_lists(search: Search, plan: Lists, folder: Path, *, start: int = 0) -> Iterator[int]:
    """Searches list by list; yields the number of finished steps after each group of lists.

    The first pass covers only the nearest list of each source: few vectors of the other lists, in
    the second pass, are nearer than those found there. Codes of many vectors are kept in `folder`.
    """
    sources, targets = search.sources, search.targets
    targets_of = _members(plan.targets[:, np.newaxis], plan.count)
    passes = [_members(lists, plan.count) for lists in np.split(plan.sources, [1], axis=1)]
    # A source is in several lists, so several threads may find neighbours for it.
    lock = Lock()
    steps = 2 * plan.count
    with threads() as pool:
        source_codes = target_codes = None
        if min(sources.shape[0], targets.shape[0]) >= FEWEST_CODED and start < steps:
            coder = Coder(sources.shape[1])
            source_codes = code_all(sources, coder.code_sources, pool, folder=folder)
            target_codes = code_all(targets, coder.code_targets, pool, folder=folder)

        def part(side: ArrayLike, places: np.ndarray, best: Neighbours, codes) -> Part:
            # Vectors are read from disk only when used.
            return Part(Selection(side, places), places, best, codes and codes[places])

        def run(step: int) -> None:
            number_of_pass, number = divmod(step, plan.count)
            places, others = passes[number_of_pass](number), targets_of(number)
            if not len(others):
                return
            listed = part(targets, others, search.backward, target_codes)
            # Sources without k neighbours yet have no limit, and are compared in float32.
            new = np.isinf(search.forward.similarities[places, -1])
            for some in (places[new], places[~new]):
                for first in range(0, len(some), _ROWS_PER_BLOCK):
                    rows = some[first : first + _ROWS_PER_BLOCK]
                    own = part(sources, rows, search.forward, source_codes)
                    compare(own, listed, lock, likely=True)

        while start < steps:
            # Within a pass, so that no two threads search the same list.
            end_of_pass = plan.count * (start // plan.count + 1)
            end = min(start + _LISTS_AT_ONCE, end_of_pass)
            list(pool.map(run, range(start, end)))
            start = end
            yield end


def _members(lists: np.ndarray, count: int) -> Callable[[int], np.ndarray]:
    """Returns a function from a list to its vectors, ascending; `lists` is int32 `[n, per vector]`.

    Transposing a sparse matrix sorts with little memory; int32 offsets need less of it.
    """
    few = lists.size <= np.iinfo(np.int32).max
    ends = (lists.shape[1] * np.arange(len(lists) + 1)).astype(np.int32 if few else np.int64)
    ones = np.ones(lists.size, bool)
    matrix = scipy.sparse.csr_array((ones, lists.ravel(), ends), (len(lists), count)).tocsc()
    return lambda number: matrix.indices[matrix.indptr[number] : matrix.indptr[number + 1]]


def complete(search: Search) -> int:
    """Searches exactly for vectors with too few neighbours in their lists; returns how many."""
    count = 0
    for own, others, best in search.directions:
        rows = np.flatnonzero(np.isinf(best.similarities[:, -1]))
        count += len(rows)
        for start in range(0, len(rows), _ROWS_PER_BLOCK):
            some = rows[start : start + _ROWS_PER_BLOCK]
            found = nearest(own[some], others, best.similarities.shape[1])
            best.similarities[some], best.indices[some] = found.similarities, found.indices
    return count


def measure_recall(search: Search) -> dict[str, float]:
    """Returns the share of true neighbours that were found, for 1,000 queries per direction.

    `..._nearest` counts only the first. The number of probes was chosen with other queries.
    """
    measured = {}
    for name, (own, others, best) in zip(("forward", "backward"), search.directions, strict=True):
        rows = _sample(own, _SAMPLE, _SEED + 1)
        true = nearest(own[rows], others, best.indices.shape[1]).indices
        hits = (true[:, :, np.newaxis] == best.indices[rows][:, np.newaxis, :]).any(axis=2)
        measured |= {name: float(hits.mean()), f"{name}_nearest": float(hits[:, 0].mean())}
    return measured


def _sample(vectors: ArrayLike, count: int, seed: int) -> np.ndarray:
    """Returns random row indices in ascending order."""
    total = vectors.shape[0]
    rng = np.random.default_rng(seed)
    return np.sort(rng.choice(total, min(count, total), replace=False))


def _assign(
    vectors: ArrayLike, centroids: np.ndarray, count: int, progress: Progress
) -> np.ndarray:
    """Returns int32 `[n, count]`: the nearest centroids of each vector, the very nearest first."""
    assigned = np.empty((vectors.shape[0], count), np.int32)
    last = len(centroids) - count

    def assign(start: int) -> None:
        found = products(vectors[start : start + _ROWS_PER_BLOCK], centroids)
        part = assigned[start : start + len(found)]
        part[:, 0] = found.argmax(axis=1)
        if count > 1:
            np.put_along_axis(found, part[:, :1], np.inf, axis=1)
            # The nearest centroid, whose product was just set to inf, comes last.
            others = np.argpartition(found, (last, len(centroids) - 1), axis=1)
            part[:, 1:] = others[:, last:-1]
        progress.update(len(found))

    with threads() as pool:
        list(pool.map(assign, range(0, vectors.shape[0], _ROWS_PER_BLOCK)))
    return assigned


def _probes(
    sources: ArrayLike,
    targets: ArrayLike,
    of_targets: np.ndarray,
    centroids: np.ndarray,
    k: int,
    recall: float,
) -> int:
    """Returns how many lists per source must be searched to reach the recall in both directions.

    A neighbour is found if the target's list is a list of the source. So it is enough to know the
    true neighbours of a sample, and how many centroids are nearer to the source than the target's.
    """
    most = 0
    for own, others, order in ((sources, targets, 1), (targets, sources, -1)):
        rows = _sample(own, _SAMPLE, _SEED + 2)
        found = nearest(own[rows], others, k).indices
        pairs = (np.repeat(rows, found.shape[1]), found.ravel())[::order]
        near = products(sources[pairs[0]], centroids)
        lists = of_targets[pairs[1]].astype(np.int64)
        ranks = (near > np.take_along_axis(near, lists[:, np.newaxis], axis=1)).sum(axis=1)
        # Mined pairs are mostly nearest neighbours, which are not the easiest to find.
        for some in (ranks, ranks.reshape(found.shape)[:, 0]):
            most = max(most, int(np.sort(some)[max(0, math.ceil(recall * len(some)) - 1)]) + 1)
    return most
