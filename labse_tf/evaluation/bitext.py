"""Metrics of bitext retrieval: is each sentence's translation nearer than all others?"""

from __future__ import annotations

import numpy as np


def all_cosines(queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Returns the cosines `[n, m]` of unit rows, float32 `[n, dim]` and `[m, dim]`.

    Equal rows, such as a repeated sentence's, are multiplied once: rounding may differ between the
    rows of a product, and would tell them apart.
    """
    sides = [np.unique(side, axis=0, return_inverse=True) for side in (queries, candidates)]
    (rows, row_of), (columns, column_of) = sides
    return (rows @ columns.T)[np.ix_(row_of.ravel(), column_of.ravel())]


def found(similarities: np.ndarray) -> np.ndarray:
    """Returns bool `[n]`: whether the entry on the diagonal is greater than all others of its row.

    The right candidate of a query has the query's index. A tie with a wrong candidate counts as
    wrong, so that equal vectors find nothing.
    """
    own = np.arange(len(similarities))
    others = similarities.copy()
    others[own, own] = -np.inf
    return similarities[own, own] > others.max(axis=1)


def accuracies(similarities: np.ndarray) -> dict[str, float]:
    """Returns the shares that are `found`, `to_english` and `from_english`.

    Row i of `[n, n]` is a foreign sentence, column i its English translation. 1 minus this is
    LASER's similarity search error (Artetxe and Schwenk 2019, arXiv 1812.10464, section 4.4), ties
    aside.
    """
    return {
        "to_english": float(np.mean(found(similarities))),
        "from_english": float(np.mean(found(similarities.T))),
    }


def weighted_scores(predicted: np.ndarray, gold: np.ndarray) -> dict[str, float]:
    """Returns `precision`, `recall` and `f1` of retrieval as classification, as in MTEB.

    MTEB (Muennighoff et al. 2023, arXiv 2210.07316, section 3.2) treats each candidate as a class
    and averages the scores of the classes, weighted by the number of queries that belong to them.
    With one query per class, a correct query counts 1 in `f1` if no other query found its
    candidate, 2/3 if one other did, 2/4 if two did, and so on; a wrong one counts 0.

    Args:
      predicted: `[n]` ints, the nearest candidates; MTEB takes the lowest index of equal ones.
      gold: `[n]` ints, the right candidates; may repeat.
    """
    predicted, gold = np.asarray(predicted), np.asarray(gold)
    classes, class_of, queries = np.unique(gold, return_inverse=True, return_counts=True)
    right = np.bincount(class_of, weights=predicted == gold, minlength=len(classes))
    values, counts = np.unique(np.concatenate([classes, predicted]), return_counts=True)
    times_predicted = counts[np.isin(values, classes)] - 1
    scores = {
        "precision": right / np.maximum(times_predicted, 1),
        "recall": right / queries,
        "f1": 2 * right / (queries + times_predicted),
    }
    return {name: float(np.average(score, weights=queries)) for name, score in scores.items()}
