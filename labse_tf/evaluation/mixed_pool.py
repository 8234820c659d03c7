"""Searching one pool of the same sentences in several languages: do vectors cluster by meaning?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labse_tf.retrieval.neighbours import nearest

_ROWS = 512


def neighbour_shares(vectors: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Counts the languages of nearest neighbours.

    Args:
      vectors: per language float32 `[n, dim]`; rows i are translations of each other.

    Returns:
      `same_language` and `translation`, the shares of sentences whose nearest other sentence is in
      their own language, and is a translation; `shares`, each language's share of all nearest
      sentences; `from`, the same by the language of the sentence; and what `ranks` returns.
    """
    codes = list(vectors)
    size = len(vectors[codes[0]])
    pool = np.concatenate([vectors[code] for code in codes])
    own = np.arange(len(pool))
    two = nearest(pool, pool, 2).indices
    # A sentence is its own nearest neighbour, unless others have the same vector.
    neighbours = np.where(two[:, 0] == own, two[:, 1], two[:, 0])
    counts = np.zeros((len(codes), len(codes)))
    np.add.at(counts, (own // size, neighbours // size), 1)
    shares = counts / size
    return {
        "same_language": float(np.trace(counts) / len(pool)),
        "translation": float(np.mean(neighbours % size == own % size)),
        **ranks(pool, size),
        "shares": dict(zip(codes, (counts.sum(axis=0) / len(pool)).tolist(), strict=True)),
        "from": {
            code: dict(zip(codes, row.tolist(), strict=True))
            for code, row in zip(codes, shares, strict=True)
        },
    }


def ranks(pool: np.ndarray, size: int) -> dict[str, float]:
    """Returns how high translations rank in a mixed pool.

    As in LAReQA (Roy et al. 2020, arXiv 2004.05484), with sentences for questions and answers.

    Args:
      pool: float32 `[languages * size, dim]`, unit rows; rows i and i + size are translations.
      size: sentences of each language, at least 2.

    Returns:
      `mean_average_precision` of ranking the whole pool, other than the sentence itself, where all
      translations are to be found (section 3.3); and `nearer`, the share of translations that are
      nearer than all other sentences in the sentence's own language: "strong" alignment.
    """
    places = np.arange(len(pool))
    precision, nearer = 0.0, 0.0
    for start in range(0, len(pool), _ROWS):
        rows = places[start : start + _ROWS]
        block = np.arange(len(rows))
        similarities = pool[rows] @ pool.T
        similarities[block, rows] = -np.inf  # Not itself.
        by_language = similarities.reshape(len(rows), -1, size)
        others = np.arange(by_language.shape[1]) != rows[:, np.newaxis] // size
        right = by_language[block, :, rows % size][others].reshape(len(rows), -1)
        rival = by_language[block, rows // size].max(axis=1, keepdims=True)
        nearer += float(np.sum(np.mean(right > rival, axis=1)))
        similarities.sort(axis=1)
        right.sort(axis=1)
        precision += sum(map(_average_precision, right, similarities))
    return {"mean_average_precision": precision / len(pool), "nearer": nearer / len(pool)}


def _average_precision(right: np.ndarray, everything: np.ndarray) -> float:
    """Returns the mean over `right` of the share of right ones among all at least as similar.

    Both are sorted.
    """
    at_least = [len(one) - np.searchsorted(one, right) for one in (right, everything)]
    return float(np.mean(at_least[0] / at_least[1]))
