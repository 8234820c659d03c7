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
from labse_tf.retrieval.array_like import ArrayLike
from labse_tf.retrieval.best import Neighbours
from labse_tf.retrieval.hamming import search_bits
from labse_tf.retrieval.neighbours import check_search, search_blocks
from labse_tf.retrieval.rescoring import PER_NEIGHBOUR, PER_NEIGHBOUR_IF_BINARY, rescore
from labse_tf.retrieval.vectors import is_binary, read_bits

INDEXES = ("auto", "exact", "approximate")
# Inner products of a source and a target: about ten minutes at dimension 768 on 2 cores.
MOST_EXACT_PRODUCTS = 10**11
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
        candidates = k * (PER_NEIGHBOUR_IF_BINARY if coarse else PER_NEIGHBOUR)
    forward, backward, facts = search(candidates)
    with Progress("rescore", total=sum(counts), unit="sentence") as progress:
        ahead = rescore(forward, *rescored_by, k, on_progress=progress.update)
        back = rescore(backward, *rescored_by[::-1], k, on_progress=progress.update)
    return ahead, back, facts | {"candidates": candidates}


def _search(
    sources: ArrayLike, targets: ArrayLike, folder: Path, k: int, *, index: str, recall: float
) -> tuple[Neighbours, Neighbours, dict[str, Any]]:
    index = choose_index(index, sources.shape[0], targets.shape[0])
    forward = Neighbours.none_yet(sources.shape[0], check_search(sources, targets, k))
    backward = Neighbours.none_yet(targets.shape[0], check_search(targets, sources, k))
    start = _load(folder / _STATE, forward, backward)
    if index == "exact":
        total, unit = sources.shape[0], "source"
        if is_binary(sources) and is_binary(targets):
            bits = read_bits(sources), read_bits(targets)
            dim = sources.shape[1]
            steps = search_bits(*bits, forward, backward, dim=dim, start=start)
            total, unit = total + targets.shape[0], "sentence"
        else:
            steps = search_blocks(sources, targets, forward, backward, start=start)
        _run(steps, folder, forward, backward, start, total=total, unit=unit)
        return forward, backward, {"index": "exact"}
    # Imported here because it imports faiss.
    from labse_tf.retrieval import approximate

    plan = _plan(sources, targets, k, folder, recall)
    steps = approximate.search_lists(sources, targets, plan, forward, backward, folder, start=start)
    _run(steps, folder, forward, backward, start, total=plan.steps, unit="list")
    completed = approximate.complete(sources, targets, forward, backward)
    measured = approximate.measure_recall(sources, targets, forward, backward)
    facts = {
        "index": "approximate",
        "lists": plan.count,
        "probes": plan.sources.shape[1],
        "searched_exactly": completed,
        "recall_wanted": recall,
        "recall": measured,
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
        with whole_file(centroids_file) as partial, open(partial, "wb") as file:
            np.save(file, centroids)
    centroids = np.load(centroids_file, allow_pickle=False)
    if not lists_file.exists():
        total = sources.shape[0] + targets.shape[0]
        with Progress("assign to lists", total=total, unit="vector") as progress:
            plan = approximate.make_lists(
                sources, targets, centroids, k, recall=recall, on_progress=progress.update
            )
        with whole_file(lists_file) as partial, open(partial, "wb") as file:
            np.savez(file, sources=plan.sources, targets=plan.targets)
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
                _save(folder / _STATE, forward, backward, end)
                saved = time.monotonic()


def _save(path: Path, forward: Neighbours, backward: Neighbours, done: int) -> None:
    with whole_file(path, overwrite=True) as partial, open(partial, "wb") as file:
        np.savez(
            file,
            done=done,
            forward_similarities=forward.similarities,
            forward_indices=forward.indices,
            backward_similarities=backward.similarities,
            backward_indices=backward.indices,
        )


def _load(path: Path, forward: Neighbours, backward: Neighbours) -> int:
    """Loads the saved neighbours; returns the number of finished steps."""
    if not path.exists():
        return 0
    with np.load(path, allow_pickle=False) as kept:
        for name, neighbours in (("forward", forward), ("backward", backward)):
            neighbours.similarities[:] = kept[f"{name}_similarities"]
            neighbours.indices[:] = kept[f"{name}_indices"]
        return int(kept["done"])
