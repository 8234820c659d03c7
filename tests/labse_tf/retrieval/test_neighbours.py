"""Exact neighbours: against a full sort, with ties, in blocks of every size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.retrieval.neighbours import Neighbours, nearest, nearest_both, search_blocks


def sorted_whole(queries, candidates, k):
    """The definition: everything sorted by product, then by place."""
    products = np.asarray(queries, np.float64) @ np.asarray(candidates, np.float64).T
    places = np.broadcast_to(np.arange(len(candidates)), products.shape)
    order = np.lexsort((places, -products), axis=1)[:, :k]
    return np.take_along_axis(products, order, axis=1), order


def in_blocks(sources, targets, k, **sizes):
    forward = Neighbours.none_yet(len(sources), min(k, len(targets)))
    backward = Neighbours.none_yet(len(targets), min(k, len(sources)))
    for _ in search_blocks(sources, targets, forward, backward, **sizes):
        pass
    return forward, backward


# Small integers: their products are exact, and many are equal.
vectors_of_ties = st.integers(0, 2**32 - 1).map(np.random.default_rng)


@settings(max_examples=60)
@given(
    vectors_of_ties,
    st.integers(1, 90),
    st.integers(1, 90),
    st.integers(1, 7),
    st.integers(1, 40),
    st.integers(1, 100),
)
def test_blocks_of_any_size_find_what_a_sort_finds(generator, n, m, k, rows, columns):
    sources, targets = (
        generator.integers(-2, 3, (count, 3)).astype(np.float32) for count in (n, m)
    )
    both = in_blocks(sources, targets, k, rows=rows, columns=columns)
    for found, own, others in zip(both, (sources, targets), (targets, sources), strict=True):
        similarities, indices = sorted_whole(own, others, k)
        np.testing.assert_array_equal(found.indices, indices)
        np.testing.assert_array_equal(found.similarities, similarities)
        assert (found.similarities.dtype, found.indices.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize("k", [1, 4, 16, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_wide_blocks_find_what_a_sort_finds(k, dtype):
    generator = np.random.default_rng(k)
    # 1,100 columns: groups of several, and a rest that fills no group.
    sources, targets = (generator.integers(-99, 99, (n, 8)).astype(dtype) for n in (257, 1100))
    for found, own, others in zip(
        nearest_both(sources, targets, k), (sources, targets), (targets, sources), strict=True
    ):
        similarities, indices = sorted_whole(own, others, k)
        np.testing.assert_array_equal(found.indices, indices)
        np.testing.assert_array_equal(found.similarities, similarities)


def test_one_direction_is_half_of_both():
    generator = np.random.default_rng(0)
    sources, targets = (generator.standard_normal((n, 5), np.float32) for n in (30, 20))
    forward, backward = nearest_both(sources, targets, 3)
    alone = nearest(sources, targets, 3), nearest(targets, sources, 3)
    for one, other in zip((forward, backward), alone, strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.similarities, other.similarities)


@pytest.mark.parametrize("count", [3, 70, 5000])
def test_equal_vectors_are_equally_near_wherever_they_are(count):
    """768 real dimensions: products are rounded, and all the same."""
    generator = np.random.default_rng(1)
    target, source = generator.standard_normal((2, 1, 768), np.float32)
    found, _ = in_blocks(np.repeat(source, 5, 0), np.repeat(target, count, 0), 3, columns=4097)
    np.testing.assert_array_equal(found.indices, np.tile([0, 1, 2], (5, 1)))
    assert len(np.unique(found.similarities)) == 1


def test_a_search_goes_on_from_any_block():
    generator = np.random.default_rng(2)
    sources, targets = (generator.standard_normal((n, 4), np.float32) for n in (50, 40))
    whole = in_blocks(sources, targets, 2)
    forward, backward = Neighbours.none_yet(50, 2), Neighbours.none_yet(40, 2)
    steps = search_blocks(sources, targets, forward, backward, rows=8)
    assert [next(steps), next(steps)] == [8, 16]
    steps.close()
    rest = search_blocks(sources, targets, forward, backward, rows=8, start=16)
    assert list(rest) == [24, 32, 40, 48, 50]
    for one, other in zip(whole, (forward, backward), strict=True):
        np.testing.assert_array_equal(one.indices, other.indices)


def test_fewer_candidates_than_asked_for_are_all_there_are():
    found = nearest(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)[:1], 4)
    np.testing.assert_array_equal(found.indices, [[0], [0]])
    np.testing.assert_array_equal(found.similarities, [[1], [0]])


@pytest.mark.parametrize(
    ("queries", "candidates", "k", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), 1, "dimensions differ: 3 and 4"),
        (np.ones((2, 3)), np.ones((0, 3)), 1, "no candidates"),
        (np.ones((2, 3)), np.ones((2, 3)), 0, "k is 0"),
    ],
)
def test_searches_that_make_no_sense_are_refused(queries, candidates, k, message):
    with pytest.raises(ValueError, match=message):
        nearest(queries, candidates, k)
