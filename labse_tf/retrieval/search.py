"""The search in both directions as a job: exact or approximate, with progress saved to disk."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labse_tf.files.outputs import whole_file
from labse_tf.progress import Progress
from labse_tf.retrieval.neighbours import Neighbours, Search, rescore, search_bits, search_blocks
from labse_tf.retrieval.vectors import ArrayLike, is_binary, read_bits

INDEXES = ("auto", "exact", "approximate")
# Inner products of a source and a target: about ten minutes at dimension 768 on 2 cores.
MOST_EXACT_PRODUCTS = 10**11
# The nearest by binary vectors are among that many, mostly; docs/embedding.md has figures.
_CANDIDATES_IF_BINARY = 16
_CANDIDATES = 2
_SECONDS_BETWEEN_SAVES = 60


def search_both(
    sources: ArrayLike,
    targets: ArrayLike,
    k: int,
    folder: Path,
    *,
    index: str,
    recall: float,
    rescored_by: Sequence[ArrayLike] | None = None,
) -> tuple[Neighbours, Neighbours, dict[str, Any]]:
    """Same as `nearest_both`, but resumes an interrupted search; returns facts for a report too.

    Binary vectors on disk are searched exactly by their bits.

    Args:
      sources: float `[n, dim]`.
      targets: float `[m, dim]`.
      k: the number of neighbours.
      folder: keeps finished work; from the same search, or empty.
      index: one of INDEXES; `auto` is exact up to MOST_EXACT_PRODUCTS.
      recall: recall of an approximate search, see `labse_tf.retrieval.approximate`.
      rescored_by: more exact vectors of the same sources and targets, of any dimension. If given,
        the search finds candidates, 16 k by binary vectors and otherwise 2 k, and the k nearest of
        them by these vectors are returned, with similarities of these vectors.
    """
    count, candidates = sources.shape[0] + targets.shape[0], k
    if rescored_by:
        coarse = is_binary(sources) or is_binary(targets)
        candidates *= _CANDIDATES_IF_BINARY if coarse else _CANDIDATES
    search, facts = _search(sources, targets, candidates, folder, index=index, recall=recall)
    if not rescored_by:
        return search.forward, search.backward, facts
    with Progress("rescore", total=count, unit="sentence") as progress:
        step = progress.update
        forward = rescore(search.forward.indices, *rescored_by, k, on_progress=step)
        backward = rescore(search.backward.indices, *rescored_by[::-1], k, on_progress=step)
    return forward, backward, facts | {"candidates": candidates}


def _search(
    sources: ArrayLike, targets: ArrayLike, k: int, folder: Path, *, index: str, recall: float
) -> tuple[Search, dict[str, Any]]:
    search, (n, m) = Search(sources, targets, k), (sources.shape[0], targets.shape[0])
    if index == "exact" or (index == "auto" and n * m <= MOST_EXACT_PRODUCTS):
        if is_binary(sources) and is_binary(targets):
            bits = copy.copy(search)
            bits.sources, bits.targets = read_bits(sources), read_bits(targets)
            run = functools.partial(search_bits, bits, dim=sources.shape[1])
            _run(run, search, folder, n + m, unit="sentence")
        else:
            _run(functools.partial(search_blocks, search), search, folder, n, unit="source")
        return search, {"index": "exact"}
    # Imported here because it imports faiss.
    from labse_tf.retrieval import approximate

    plan = _plan(search, k, folder, recall)
    run = functools.partial(approximate.search_lists, search, plan, folder)
    _run(run, search, folder, total=2 * plan.count, unit="list")
    facts = {
        "index": "approximate",
        "lists": plan.count,
        "probes": plan.sources.shape[1],
        "searched_exactly": approximate.complete(search),
        "recall_wanted": recall,
        "recall": approximate.measure_recall(search),
    }
    return search, facts


def _plan(search: Search, k: int, folder: Path, recall: float):
    """Returns the `Lists` of an approximate search, made once."""
    from labse_tf.retrieval import approximate

    sides, file = (search.sources, search.targets), folder / "plan.npz"
    if not file.exists():
        count = approximate.default_lists(*(side.shape[0] for side in sides))
        with Progress("train lists", total=count, unit="list") as progress:
            centroids = approximate.train_centroids(*sides, count)
            progress.update(count)
        plan = approximate.make_lists(*sides, centroids, k, recall=recall)
        with whole_file(file) as partial:
            np.savez(partial, **plan._asdict())
    with np.load(file, allow_pickle=False) as kept:
        return approximate.Lists(kept["sources"], kept["targets"], int(kept["count"]))


def _run(
    run: Callable[..., Iterator[int]], search: Search, folder: Path, total: int, *, unit: str
) -> None:
    """Runs a search from where an interrupted run of it saved its state; saves it every minute."""
    file = folder / "search.npz"
    arrays = {
        f"{direction}_{name}": array
        for direction in ("forward", "backward")
        for name, array in vars(getattr(search, direction)).items()
    }
    start = 0
    if file.exists():
        with np.load(file, allow_pickle=False) as kept:
            start = int(kept["done"])
            for name, array in arrays.items():
                array[:] = kept[name]
    saved = time.monotonic()
    with Progress("search", total=total, unit=unit, initial=start) as progress:
        for end in run(start=start):
            progress.update(end - start)
            start = end
            if time.monotonic() - saved > _SECONDS_BETWEEN_SAVES or end == total:
                with whole_file(file, overwrite=True) as partial:
                    np.savez(partial, done=end, **arrays)
                saved = time.monotonic()
