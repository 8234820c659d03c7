"""LASER's error and MTEB's F1, against their definitions worked out in other ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from labse_tf.evaluation.bitext import accuracy, nearest_indices, weighted_scores


def test_of_equal_candidates_the_lowest_index_is_the_nearest():
    candidates = np.array([[0, 1], [1, 0], [1, 0], [0, 1]], np.float32)
    queries = np.array([[1, 0], [0, 1], [0.6, 0.8], [0.8, 0.6], [-1, 0]], np.float32)
    # The last query is as far from 0 and 3 as from none other.
    np.testing.assert_array_equal(nearest_indices(queries, candidates), [1, 0, 0, 1, 0])


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 12), dim=st.sampled_from([1, 4]))
def test_nearest_equals_faiss_s_definition_by_distance(seed, rows, dim):
    """LASER searches by Euclidean distance of unit vectors; corners of a cube give many ties."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (2, rows, dim))
    # Exact in float32, so that what is equal stays equal.
    queries, candidates = (signs / np.sqrt(dim)).astype(np.float32)
    expected = [
        min(range(rows), key=lambda j: (np.sum((query - candidates[j]) ** 2), j))
        for query in queries
    ]
    np.testing.assert_array_equal(nearest_indices(queries, candidates), expected)


def test_later_duplicates_are_never_found_however_rounding_goes():
    """Of 40 copies of a vector anywhere in a big pool the first is the nearest."""
    generator = np.random.default_rng(1)
    candidates = generator.standard_normal((997, 33)).astype(np.float32)
    copies = np.sort(generator.choice(997, 40, replace=False))
    candidates[copies] = candidates[copies[0]]
    candidates /= np.linalg.norm(candidates, axis=1, keepdims=True)
    candidates[copies] = candidates[copies[0]]
    found = nearest_indices(candidates, candidates)
    np.testing.assert_array_equal(found[copies], np.full(40, copies[0]))
    assert accuracy(found, np.arange(997)) == pytest.approx(1 - 39 / 997)


@pytest.mark.parametrize(
    "predicted, gold, precision, recall, f1",
    [
        ([0, 1, 2], [0, 1, 2], 1, 1, 1),
        ([1, 2, 0], [0, 1, 2], 0, 0, 0),
        # 0 is found by two queries, one of them rightly: precision 1/2, F1 2/3; the others 0.
        ([0, 0, 1], [0, 1, 2], 1 / 6, 1 / 3, 2 / 9),
        # Candidates that are no gold of any query count nowhere.
        ([7, 9], [7, 8], 1 / 2, 1 / 2, 1 / 2),
        # One candidate is the gold of two queries and found by one of them: P 1, R 1/2, F1 2/3.
        ([4, 5], [4, 4], 1, 1 / 2, 2 / 3),
    ],
)
def test_weighted_scores_by_hand(predicted, gold, precision, recall, f1):
    expected = {"precision": precision, "recall": recall, "f1": f1}
    assert weighted_scores(np.array(predicted), np.array(gold)) == pytest.approx(expected)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=30),
)
def test_weighted_scores_equal_scikit_learn_s(rows):
    predicted, gold = np.array(rows).T
    expected = precision_recall_fscore_support(gold, predicted, average="weighted", zero_division=0)
    found = weighted_scores(predicted, gold)
    assert list(found.values()) == pytest.approx(expected[:3])
