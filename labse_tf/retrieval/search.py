"""The search in both directions as a job: exact or approximate, with progress saved to disk."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labse_tf.files.outputs import whole_file
from labse_tf.progress import Progress
from labse_tf.retrieval.neighbours import (
    Neighbours,
    check_search,
    rescore,
    search_bits,
    search_blocks,
)
from labse_tf.retrieval.vectors import ArrayLike, is_binary, read_bits

INDEXES = ("auto", "exact", "approximate")
# Inner products of a source and a target: about ten minutes at dimension 768 on 2 cores.
MOST_EXACT_PRODUCTS = 10**11
# The nearest by binary vectors are among that many, mostly; docs/embedding.md has figures.
_CANDIDATES_IF_BINARY = 16
_CANDIDATES = 2
_SECONDS_BETWEEN_SAVES = 60
_STATE = "search.npz"


def choose_index(index: str, sources: int, targets: int) -> str:
    """Returns `exact` or `approximate`; `auto` is resolved by the number of products."""
    if index != "auto":
        return index
    return "exact" if sources * targets <= MOST_EXACT_PRODUCTS else "approximate"


def search_both(
    sources: ArrayLike,
    targets: ArrayLike,
    k: int,
    folder: Path,
    *,
    index: str,
    recall: float,
    rescored_by: Sequence[ArrayLike] | None = None,
    candidates: int | None = None,
) -> tuple[Neighbours, Neighbours, dict[str, Any]]:
    """Same as `nearest_both`, but resumes an interrupted search.

    Binary vectors on disk are searched exactly by their bits.

    Args:
      sources: float `[n, dim]`.
      targets: float `[m, dim]`.
      k: the number of neighbours.
      folder: keeps finished work; from the same search, or empty.
      index: one of INDEXES.
      recall: recall of an approximate search, see `labse_tf.retrieval.approximate`.
      rescored_by: more exact vectors of the same sources and targets, `[n, other dim]` and
        `[m, other dim]`. If given, the search finds candidates, and the k nearest of them by these
        vectors are returned, with similarities of these vectors.
      candidates: how many per query, at least k; None: 16 k for binary vectors, otherwise 2 k.

    Returns:
      The neighbours of both directions, and facts for a report.

    Raises:
      ValueError: as `nearest`, or if the numbers of vectors differ in `rescored_by`.
    """
    search = functools.partial(_search, sources, targets, folder, index=index, recall=recall)
    if rescored_by is None:
        return search(k)
    counts = [side.shape[0] for side in rescored_by]
    if counts != [sources.shape[0], targets.shape[0]]:
        raise ValueError(f"{sources.shape[0]} and {targets.shape[0]} vectors, rescored by {counts}")
    check_search(*rescored_by, k)
    if candidates is None:
        coarse = is_binary(sources) or is_binary(targets)
        candidates = k * (_CANDIDATES_IF_BINARY if coarse else _CANDIDATES)
    forward, backward, facts = search(candidates)
    with Progress("rescore", total=sum(counts), unit="sentence") as progress:
        ahead = rescore(forward.indices, *rescored_by, k, on_progress=progress.update)
        back = rescore(backward.indices, *rescored_by[::-1], k, on_progress=progress.update)
    return ahead, back, facts | {"candidates": candidates}


def _search(
    sources: ArrayLike, targets: ArrayLike, folder: Path, k: int, *, index: str, recall: float
) -> tuple[Neighbours, Neighbours, dict[str, Any]]:
    counts = sources.shape[0], targets.shape[0]
    forward = Neighbours.none_yet(counts[0], check_search(sources, targets, k))
    backward = Neighbours.none_yet(counts[1], check_search(targets, sources, k))
    sides = sources, targets, forward, backward
    start = _load(folder / _STATE, forward, backward)
    if choose_index(index, *counts) == "exact":
        if is_binary(sources) and is_binary(targets):
            bits, dim = (read_bits(sources), read_bits(targets)), sources.shape[1]
            steps = search_bits(*bits, forward, backward, dim=dim, start=start)
            total, unit = sum(counts), "sentence"
        else:
            steps = search_blocks(*sides, start=start)
            total, unit = counts[0], "source"
        _run(steps, folder, forward, backward, start, total=total, unit=unit)
        return forward, backward, {"index": "exact"}
    # Imported here because it imports faiss.
    from labse_tf.retrieval import approximate

    plan = _plan(sources, targets, k, folder, recall)
    steps = approximate.search_lists(sources, targets, plan, forward, backward, folder, start=start)
    _run(steps, folder, forward, backward, start, total=plan.steps, unit="list")
    facts = {
        "index": "approximate",
        "lists": plan.count,
        "probes": plan.sources.shape[1],
        "searched_exactly": approximate.complete(*sides),
        "recall_wanted": recall,
        "recall": approximate.measure_recall(*sides),
    }
    return forward, backward, facts


def _plan(sources: ArrayLike, targets: ArrayLike, k: int, folder: Path, recall: float):
    from labse_tf.retrieval import approximate

    centroids_file, lists_file = folder / "centroids.npy", folder / "lists.npz"
    if not centroids_file.exists():
        count = approximate.default_lists(sources.shape[0], targets.shape[0])
        with Progress("train lists", total=count, unit="list") as progress:
            centroids = approximate.train_centroids(sources, targets, count)
            progress.update(count)
        with whole_file(centroids_file) as partial:
            np.save(partial, centroids)
    centroids = np.load(centroids_file, allow_pickle=False)
    if not lists_file.exists():
        total = sources.shape[0] + targets.shape[0]
        with Progress("assign to lists", total=total, unit="vector") as progress:
            plan = approximate.make_lists(
                sources, targets, centroids, k, recall=recall, on_progress=progress.update
            )
        with whole_file(lists_file) as partial:
            np.savez(partial, sources=plan.sources, targets=plan.targets)
    with np.load(lists_file, allow_pickle=False) as kept:
        return approximate.Lists(kept["sources"], kept["targets"], len(centroids))


def _run(
    steps: Iterator[int],
    folder: Path,
    forward: Neighbours,
    backward: Neighbours,
    start: int,
    *,
    total: int,
    unit: str,
) -> None:
    saved = time.monotonic()
    with Progress("search", total=total, unit=unit, initial=start) as progress:
        for end in steps:
            progress.update(end - start)
            start = end
            if time.monotonic() - saved > _SECONDS_BETWEEN_SAVES or end == total:
                arrays = _arrays(forward, backward)
                with whole_file(folder / _STATE, overwrite=True) as partial:
                    np.savez(partial, done=end, **arrays)
                saved = time.monotonic()


def _arrays(forward: Neighbours, backward: Neighbours) -> dict[str, np.ndarray]:
    return {
        f"{direction}_{name}": array
        for direction, found in (("forward", forward), ("backward", backward))
        for name, array in vars(found).items()
    }


def _load(path: Path, forward: Neighbours, backward: Neighbours) -> int:
    """Loads the saved neighbours; returns the number of finished steps."""
    if not path.exists():
        return 0
    with np.load(path, allow_pickle=False) as kept:
        for name, array in _arrays(forward, backward).items():
            array[:] = kept[name]
        return int(kept["done"])
