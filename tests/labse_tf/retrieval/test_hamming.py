"""Neighbours by bits: as by products of the same vectors, and from any query on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.embedding.quantisation import Binary
from labse_tf.retrieval import neighbours
from labse_tf.retrieval.neighbours import Neighbours, nearest, search_bits


def nearest_bits(queries, candidates, k, *, dim):
    found, other = Neighbours.none_yet(len(queries), k), Neighbours.none_yet(len(candidates), 1)
    for _ in search_bits(queries, candidates, found, other, dim=dim):
        pass
    return found


def test_similarities_by_hand():
    """2 dimensions of 8 bits are used: of them none, one or both differ."""
    queries = np.array([[0b11000000]], np.uint8)
    candidates = np.array([[0b00000000], [0b10000000], [0b11000000], [0b01000000]], np.uint8)
    found = nearest_bits(queries, candidates, 4, dim=2)
    np.testing.assert_array_equal(found.indices, [[2, 1, 3, 0]])
    np.testing.assert_array_equal(found.similarities, np.array([[1, 0, 0, -1]], np.float32))
    assert (found.indices.dtype, found.similarities.dtype) == (np.int64, np.float32)


@settings(max_examples=50)
@given(
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
    st.integers(1, 30),
    st.integers(1, 90),
    st.sampled_from([4, 16, 64]),
    st.integers(1, 9),
)
def test_neighbours_are_those_of_the_vectors(generator, n, m, dim, k):
    """Square roots of the dimensions are exact, and so are ties."""
    calibration = Binary(np.zeros(dim, np.float32))
    bits = [calibration.quantise(generator.standard_normal((count, dim))) for count in (n, m)]
    expected = nearest(*map(calibration.dequantise, bits), min(k, m))
    found = nearest_bits(*bits, min(k, m), dim=dim)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.similarities, expected.similarities, atol=1e-6)


@pytest.mark.parametrize("blocks", range(6))
def test_a_search_goes_on_from_any_block(monkeypatch, blocks):
    monkeypatch.setattr(neighbours, "ROWS_PER_BLOCK", 4)
    generator = np.random.default_rng(0)
    sources, targets = (generator.integers(0, 256, (n, 3), np.uint8) for n in (10, 7))
    forward, backward = Neighbours.none_yet(10, 2), Neighbours.none_yet(7, 2)

    def search(start):
        return search_bits(sources, targets, forward, backward, dim=24, start=start)

    done = list(itertools.islice(search(0), blocks))
    assert done + list(search(done[-1] if done else 0)) == [4, 8, 10, 14, 17]
    for found, own, others in ((forward, sources, targets), (backward, targets, sources)):
        expected = nearest_bits(own, others, 2, dim=24)
        np.testing.assert_array_equal(found.indices, expected.indices)
        np.testing.assert_array_equal(found.similarities, expected.similarities)
