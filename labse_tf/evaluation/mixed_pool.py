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
    own = np.arange(len(pool))
    precision, nearer = 0.0, 0.0
    for start in range(0, len(pool), _ROWS):
        rows = own[start : start + _ROWS]
        for row, similarities in zip(rows, pool[rows] @ pool.T, strict=True):
            translation = (own % size == row % size) & (own != row)
            right = similarities[translation]
            precision += _average_precision(right, np.delete(similarities, row))
            mine = (own // size == row // size) & (own != row)
            nearer += np.mean(right > similarities[mine].max())
    return {
        "mean_average_precision": float(precision / len(pool)),
        "nearer": float(nearer / len(pool)),
    }


def _average_precision(right: np.ndarray, everything: np.ndarray) -> float:
    """Returns the mean over `right` of the share of right ones among all at least as similar."""

    def at_least(similarities: np.ndarray) -> np.ndarray:
        return len(similarities) - np.searchsorted(np.sort(similarities), right)

    return np.mean(at_least(right) / at_least(everything))
