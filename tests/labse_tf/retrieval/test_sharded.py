"""Shard by shard is as good as the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.retrieval.best import Neighbours
from labse_tf.retrieval.neighbours import nearest
from labse_tf.retrieval.sharded import merge_neighbours


def neighbours(similarities, indices):
    return Neighbours(np.array(similarities, np.float32), np.array(indices, np.int64))


def assert_equal(found, expected):
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.similarities, expected.similarities)


def test_by_hand():
    # Shards of the places 0 to 4 and 5 to 6; the second has only two candidates.
    first = neighbours([[0.9, 0.5, 0.5], [0.2, 0.1, 0.0]], [[4, 0, 1], [3, 2, 0]])
    second = neighbours([[0.7, 0.5], [0.8, 0.3]], [[1, 0], [0, 1]])
    merged = merge_neighbours([first, second], [0, 5])
    assert_equal(merged, neighbours([[0.9, 0.7, 0.5], [0.8, 0.3, 0.2]], [[4, 6, 0], [5, 6, 3]]))
    assert merged.indices.dtype == np.int64 and merged.similarities.dtype == np.float32
    nearest_one = merge_neighbours([first, second], [0, 5], k=1)
    assert_equal(nearest_one, neighbours([[0.9], [0.8]], [[4], [5]]))


def test_what_an_index_did_not_find_stays_unfound():
    nothing = neighbours([[0.4, -np.inf]], [[2, -1]])
    merged = merge_neighbours([nothing, nothing], [0, 10], k=4)
    assert_equal(merged, neighbours([[0.4, 0.4, -np.inf, -np.inf]], [[2, 12, -1, -1]]))


@settings(max_examples=60)
@given(
    data=st.data(),
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    queries=st.integers(1, 4),
    k=st.integers(1, 9),
)
def test_merged_is_what_a_search_of_the_whole_finds(data, sizes, queries, k):
    # Small whole numbers: many candidates are equally near, and float32 has no rounding.
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    asked = generator.integers(-2, 3, (queries, 3)).astype(np.float32)
    candidates = generator.integers(-2, 3, (sum(sizes), 3)).astype(np.float32)
    offsets = np.cumsum([0, *sizes])
    parts = [
        nearest(asked, candidates[start:end], k)
        for start, end in zip(offsets[:-1], offsets[1:], strict=True)
    ]
    whole = nearest(asked, candidates, k)
    assert_equal(merge_neighbours(parts, offsets[:-1], k=k), whole)
    merged = parts[0]
    for part, start in zip(parts[1:], offsets[1:], strict=False):
        merged = merge_neighbours([merged, part], [0, start], k=k)
    assert_equal(merged, whole)


@pytest.mark.parametrize(
    ("parts", "offsets", "message"),
    [
        ([], [], "0 parts"),
        ([neighbours([[0.1]], [[0]])], [0, 1], "1 parts, 2 offsets"),
        (
            [neighbours([[0.1]], [[0]]), neighbours([[0.1], [0.2]], [[0], [0]])],
            [0, 1],
            "different numbers of queries: 1, 2",
        ),
    ],
)
def test_parts_that_do_not_belong_together(parts, offsets, message):
    with pytest.raises(ValueError, match=message):
        merge_neighbours(parts, offsets)
