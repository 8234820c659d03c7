"""Compares some vectors with others: finds the pairs that may be near and their inner products."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from labse_tf.retrieval import codes
from labse_tf.retrieval.array_like import ArrayLike
from labse_tf.retrieval.best import Neighbours

_MOST_IN_A_GROUP = 32
_GROUPS_PER_NEIGHBOUR = 8
_FEWEST_VECTORS = 64
# So that their vectors stay in the processor's caches.
_PAIRS_AT_ONCE = 1024
# Float32 inner products summed in another order differ by less.
_ROUNDING = 1e-5


def products(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Returns `rows @ columns.T`, float32; equal vectors have equal products at any position.

    BLAS uses other kernels for few vectors, which round differently, so few vectors are padded.
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
      best: their neighbours found so far; None if no neighbours are wanted.
      codes: codes of the vectors; None to compare in float32 only.
    """

    vectors: ArrayLike
    best: Neighbours | None
    codes: codes.Codes | None


class Candidates(NamedTuple):
    """Indices `[pairs]` in one part and in the other, and float32 inner products."""

    own: np.ndarray
    others: np.ndarray
    similarities: np.ndarray


def compare(
    sources: Part, targets: Part, *, bounds: Callable = codes.bounds
) -> tuple[Candidates, Candidates | None]:
    """Returns the candidates for neighbours of the sources, and of the targets if wanted.

    Another thread may update the neighbours found so far at the same time. This is harmless, as
    limits only rise.

    Args:
      sources: some vectors of a side.
      targets: some vectors of the other side.
      bounds: bounds of the error of code products, `codes.bounds` or `codes.likely_bounds`.
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
    """Returns rows and columns as `near` does, for the products and for their transpose."""
    found = codes.products(sources.codes.numbers, targets.codes.numbers)
    unit = sources.codes.step * targets.codes.step
    lost = bounds(sources.codes, targets.codes)
    return [
        part.best and reaching(one, (part.best.similarities[:, -1] - off - _ROUNDING) / unit)
        for part, one, off in zip((sources, targets), (found, found.T), lost, strict=True)
    ]


def _is_limited(best: Neighbours) -> bool:
    """Whether all queries have k neighbours, so that there is a limit to compare with."""
    return bool(np.isfinite(best.similarities[:, -1]).all())


def _exactly(own: Part, others: Part, rows: np.ndarray, columns: np.ndarray) -> Candidates:
    """Returns the pairs whose exact products are among the k best, with these products."""
    values = exact_products(own.vectors, others.vectors, rows, columns)
    kept = values >= own.best.similarities[rows, -1]
    return Candidates(rows[kept], columns[kept], values[kept])


def exact_products(
    own: ArrayLike, others: ArrayLike, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Returns float32 `[pairs]`, the inner products of the pairs of rows; few are read at once.

    Args:
      own: float `[n, dim]`.
      others: float `[m, dim]`.
      rows: `[pairs]`, indices in `own`.
      columns: `[pairs]`, indices in `others`.
    """
    values = np.empty(len(rows), np.float32)
    for first in range(0, len(rows), _PAIRS_AT_ONCE):
        part = slice(first, first + _PAIRS_AT_ONCE)
        np.einsum("nd,nd->n", own[rows[part]], others[columns[part]], out=values[part])
    return values


def near(
    found: np.ndarray, best: Neighbours, *, tolerance: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns row, column and value of the products that may be among the k best of their row.

    One pass computes the maximum of each group of columns. The k-th highest maximum is a limit, as
    is the k-th best of earlier blocks, and only groups that reach both are examined.

    Args:
      found: `[n, m]`, products.
      best: `[n, k]`, the neighbours found before.
      tolerance: the possible error of the products.
    """
    k = best.similarities.shape[1]
    size = min(_MOST_IN_A_GROUP, found.shape[1] // (_GROUPS_PER_NEIGHBOUR * k))
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
      groups: the result of `_highest_of_groups`, if known.
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
    """Returns `[n, groups]`, the maximum of each group of columns, and the size of the groups."""
    # Group g has the columns g, g + groups, g + 2 groups, ...: the fastest to read. Columns after
    # the last multiple of the size are in no group.
    size = max(1, min(size, found.shape[1]))
    groups = found.shape[1] // size
    return found[:, : groups * size].reshape(-1, size, groups).max(axis=1), size
