"""Metrics of bitext retrieval, which compare the nearest candidate's index with the right one."""

from __future__ import annotations

import numpy as np


def nearest_indices(queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Returns for each query the index of the most similar candidate; on ties, the lowest.

    Candidates with equal vectors, such as a repeated sentence, are compared once, so that rounding
    cannot rank the later one first. Other ties are ties of the float32 products.

    Args:
      queries: float32 `[n, dim]`, unit rows.
      candidates: float32 `[m, dim]`, unit rows; m is small, as all similarities are held in memory.

    Returns:
      int64 `[n]`.
    """
    first_places: dict[bytes, int] = {}
    for index, row in enumerate(candidates):
        first_places.setdefault(row.tobytes(), index)
    distinct = np.fromiter(first_places.values(), np.int64)
    return distinct[np.argmax(queries @ candidates[distinct].T, axis=1)]


def accuracy(predicted: np.ndarray, gold: np.ndarray) -> float:
    """Returns the share of queries whose nearest candidate is the right one.

    1 minus this is LASER's similarity search error (Artetxe and Schwenk 2019, arXiv 1812.10464,
    section 4.4), which LASER prints in per cent.

    Args:
      predicted: `[n]` ints, from `nearest_indices`.
      gold: `[n]` ints, the right candidates.
    """
    return float(np.mean(np.asarray(predicted) == np.asarray(gold)))


def weighted_scores(predicted: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    """Returns `precision`, `recall` and `f1` of retrieval as classification, as in MTEB.

    MTEB (Muennighoff et al. 2023, arXiv 2210.07316, section 3.2) treats each candidate as a class
    and averages the scores of the classes, weighted by the number of queries that belong to them.
    With one query per class, a correct query counts 1 in `f1` if no other query found its
    candidate, 2/3 if one other did, 2/4 if two did, and so on; a wrong one counts 0.

    Args:
      predicted: `[n]` ints, from `nearest_indices`.
      gold: `[n]` ints, the right candidates; may repeat.
    """
    predicted, gold = np.asarray(predicted), np.asarray(gold)
    classes, class_of, queries = np.unique(gold, return_inverse=True, return_counts=True)
    found = np.bincount(class_of, weights=predicted == gold, minlength=len(classes))
    known, times = np.unique(predicted, return_counts=True)
    counts = dict(zip(known.tolist(), times.tolist(), strict=True))
    times_predicted = np.array([counts.get(one, 0) for one in classes.tolist()], float)
    scores = {
        "precision": found / np.maximum(times_predicted, 1),
        "recall": found / queries,
        "f1": 2 * found / (queries + times_predicted),
    }
    return {name: float(np.average(score, weights=queries)) for name, score in scores.items()}


def accuracies(similarities: np.ndarray) -> dict[str, float]:
    """Returns the share of rows (columns) whose largest entry is on the diagonal.

    A tie with another candidate does not count as found.

    Args:
      similarities: `[n, n]`, row i a foreign sentence, column i its English translation.
    """
    found = np.diag(similarities)
    others = np.where(np.eye(len(similarities), dtype=bool), -np.inf, similarities)
    return {
        "to_english": float(np.mean(found > others.max(axis=1))),
        "from_english": float(np.mean(found > others.max(axis=0))),
    }
