"""Accuracy with ties and MTEB's F1, against their definitions worked out in other ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from labse_tf.evaluation.bitext import accuracies, all_cosines, found, weighted_scores


def test_accuracies_by_hand():
    for similarities, *expected in (
        # Both rows have the diagonal as the largest; of the columns only the first.
        ([[0.9, 0.8], [0.1, 0.2]], 1.0, 0.5),
        # A tie is not found; other rows are not hurt by it.
        ([[0.5, 0.5], [0.1, 0.6]], 0.5, 1.0),
        ([[0.3]], 1.0, 1.0),
    ):
        assert list(accuracies(np.array(similarities)).values()) == expected


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 8), levels=st.integers(1, 4))
def test_found_equals_the_definition(seed, size, levels):
    """Few levels, so that there are ties; more candidates than queries."""
    matrix = np.random.default_rng(seed).integers(0, levels, (size, size + 2)).astype(float)
    expected = [
        all(row[index] > other for place, other in enumerate(row) if place != index)
        for index, row in enumerate(matrix)
    ]
    np.testing.assert_array_equal(found(matrix), expected)


def test_copies_are_ties_however_rounding_goes():
    """40 copies of a vector anywhere in a big pool find nothing; the others find themselves."""
    generator = np.random.default_rng(1)
    vectors = generator.standard_normal((997, 33)).astype(np.float32)
    copies = np.sort(generator.choice(997, 40, replace=False))
    vectors[copies] = vectors[copies[0]]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[copies] = vectors[copies[0]]
    cosines = all_cosines(vectors, vectors)
    np.testing.assert_allclose(cosines, vectors @ vectors.T, atol=1e-6)
    np.testing.assert_array_equal(np.flatnonzero(~found(cosines)), copies)
    assert accuracies(cosines) == dict.fromkeys(("to_english", "from_english"), 1 - 40 / 997)
    # MTEB takes the first of them.
    assert (cosines[copies].argmax(axis=1) == copies[0]).all()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=30))
def test_weighted_scores_equal_scikit_learns(rows):
    predicted, gold = np.array(rows).T
    expected = precision_recall_fscore_support(gold, predicted, average="weighted", zero_division=0)
    assert list(weighted_scores(predicted, gold).values()) == pytest.approx(expected[:3])
