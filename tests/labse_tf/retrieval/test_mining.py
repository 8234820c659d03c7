"""Margins, retrievals and thresholds: by hand, and against loops over everything."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.retrieval import mining
from labse_tf.retrieval.mining import MARGINS, RETRIEVALS, best_threshold, margin_scores, mine_pairs
from labse_tf.retrieval.neighbours import Neighbours


def neighbours_of(similarities, k):
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    return Neighbours(np.take_along_axis(similarities, order, axis=1), order)


def both_ways(similarities, k):
    similarities = np.asarray(similarities, np.float32)
    return neighbours_of(similarities, k), neighbours_of(np.ascontiguousarray(similarities.T), k)


def rows(pairs):
    return [
        (int(s), int(t), round(float(score), 4))
        for s, t, score in zip(pairs.sources, pairs.targets, pairs.scores, strict=True)
    ]


def test_margins_by_hand():
    # Means 0.7 and 0.65: the average of the two is 0.675.
    for margin, expected in (("absolute", 0.9), ("distance", 0.225), ("ratio", 0.9 / 0.675)):
        scores = margin_scores(np.array([0.9]), np.array([0.7]), np.array([0.65]), margin=margin)
        np.testing.assert_allclose(scores, [expected])
    # A ratio to nothing comes last.
    means = np.array([0.1, 0.0, -0.2])
    scores = margin_scores(np.array([0.1, 0.1, -0.3]), means, means, margin="ratio")
    np.testing.assert_allclose(scores, [1.0, -np.inf, -np.inf])


def test_unknown_margins_and_retrievals_are_refused():
    for name in ("margin", "retrieval"):
        with pytest.raises(ValueError, match=f"{name} is 'cosine', not one of "):
            mine_pairs(*both_ways(np.eye(2), 1), **{name: "cosine"})


def slow_pairs(similarities, k, margin, retrieval):
    """The paper's words as loops over all pairs; float32, as there is no rounding in the means."""
    n, m = similarities.shape
    near_s = [sorted(range(m), key=lambda j: (-similarities[i, j], j))[:k] for i in range(n)]
    near_t = [sorted(range(n), key=lambda i: (-similarities[i, j], i))[:k] for j in range(m)]

    def score(i, j):
        a = similarities[i, j]
        b = sum(similarities[i, z] for z in near_s[i]) / np.float32(2 * k)
        b += sum(similarities[z, j] for z in near_t[j]) / np.float32(2 * k)
        if margin == "ratio":
            return a / b if b > 0 else -math.inf
        return a if margin == "absolute" else a - b

    forward = {(i, max(near_s[i], key=lambda j: score(i, j))) for i in range(n)}
    backward = {(max(near_t[j], key=lambda i: score(i, j)), j) for j in range(m)}
    chosen = {
        "forward": forward,
        "backward": backward,
        "intersection": forward & backward,
        "max": forward | backward,
    }[retrieval]
    kept, used = [], set()
    for negative, i, j in sorted((-score(*pair), *pair) for pair in chosen):
        if retrieval != "max" or not {("s", i), ("t", j)} & used:
            kept.append((i, j, round(float(-negative), 4)))
            used |= {("s", i), ("t", j)}
    return kept


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    *[st.integers(4, 9)] * 2,
    st.sampled_from([1, 2, 4]),
    st.sampled_from(MARGINS),
    st.sampled_from(RETRIEVALS),
    st.sampled_from([2, 64]),
)
def test_mining_is_what_the_paper_says(seed, n, m, k, margin, retrieval, steps):
    """Similarities of few values, so that ties are common; equal rows stand for duplicates."""
    generator = np.random.default_rng(seed)
    similarities = (generator.integers(-1, steps + 1, (n, m)) / steps).astype(np.float32)
    similarities[n // 2] = similarities[0]
    pairs = mine_pairs(*both_ways(similarities, k), margin=margin, retrieval=retrieval)
    assert rows(pairs) == slow_pairs(similarities, k, margin, retrieval)
    assert [column.dtype for column in vars(pairs).values()] == [np.int64, np.int64, np.float32]


# Thresholds.


@pytest.mark.parametrize(
    ("scores", "is_gold", "gold_count", "expected"),
    [
        # Keeping two of three: precision 1, recall 2/3; three: 2/3 and 2/3; all four: 3/4 and 1.
        ([4, 3, 2, 1], [1, 1, 0, 1], 3, (1.0, 0.75, 1.0, 6 / 7)),
        # Only the best is right: half way down to the next. The order does not matter.
        ([1, 2, 3, 4], [0, 0, 0, 1], 2, (3.5, 1.0, 0.5, 2 / 3)),
        # Equal scores stand or fall together.
        ([5, 5, 1], [1, 0, 0], 1, (3.0, 0.5, 1.0, 2 / 3)),
        # Equally good: the higher. 2/(1+3) = 4/(5+3).
        ([5, 4, 3, 2, 1], [1, 0, 0, 0, 1], 3, (4.5, 1.0, 1 / 3, 0.5)),
        ([2, 1], [0, 0], 3, (1.5, 0.0, 0.0, 0.0)),
        ([], [], 3, (math.inf, 0.0, 0.0, 0.0)),
    ],
)
def test_the_best_threshold_by_hand(scores, is_gold, gold_count, expected):
    found = best_threshold(np.array(scores, np.float32), np.array(is_gold, bool), gold_count)
    np.testing.assert_allclose(list(vars(found).values()), expected, rtol=1e-6)


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1), st.integers(1, 4))
def test_no_other_threshold_is_better(pairs, more):
    scores, is_gold = map(np.array, zip(*pairs, strict=True))
    gold_count = int(is_gold.sum()) + more
    best = best_threshold(scores, is_gold, gold_count)
    others = [best_threshold(scores, is_gold, gold_count, x).f1 for x in np.arange(-0.5, 7.5, 0.5)]
    assert best.f1 == pytest.approx(max(others))
    assert best == best_threshold(scores, is_gold, gold_count, best.threshold)


def test_a_given_threshold_keeps_what_reaches_it():
    scores, is_gold = np.array([3.0, 2.0, 1.0]), np.array([True, False, True])
    assert best_threshold(scores, is_gold, 4, 2.0) == mining.Threshold(2.0, 0.5, 0.25, 1 / 3)
    assert best_threshold(scores, is_gold, 4, 9.0) == mining.Threshold(9.0, 0.0, 0.0, 0.0)
