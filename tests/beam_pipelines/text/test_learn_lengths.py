"""What is learnt of lengths: the same in any order and grouping, and what exact sums give."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beam_pipelines.records.records import Batch, Pair
from beam_pipelines.text.learn_lengths import _count, _describe, _sum, describe_lengths


def pairs_of(lengths):
    return [Pair("a" * source, "b" * target, "de") for source, target in lengths]


def combine(pairs, cuts, groups):
    """Counts batches between the cuts, and adds them up in two steps, as workers may."""
    ends = [0, *sorted(cuts), len(pairs)]
    counts = [
        _count(Batch("de", pairs[start:end]))
        for start, end in zip(ends, ends[1:], strict=False)
        if start < end
    ]
    parts = [_sum(counts[place : place + groups]) for place in range(0, len(counts), groups)]
    return _sum(parts)


@settings(max_examples=60)
@given(data=st.data())
def test_any_order_and_any_grouping_give_the_same_sums(data):
    length = st.integers(0, 300)
    lengths = data.draw(st.lists(st.tuples(length, length), min_size=100, max_size=160))
    pairs = pairs_of(lengths)
    whole = _count(Batch("de", pairs))
    shuffled = data.draw(st.permutations(pairs))
    cuts = data.draw(st.lists(st.integers(1, len(pairs) - 1), max_size=20))
    found = combine(shuffled, cuts, data.draw(st.integers(1, 5)))
    np.testing.assert_array_equal(found, whole)
    assert list(_describe(("de", found))) == list(_describe(("de", whole)))
    # The last number is the sum of 1 / length, each off by half a unit of 2^-32 at most.
    exact = sum(Fraction(1, max(1, *sides)) for sides in lengths)
    assert abs(Fraction(int(whole[-1]), 1 << 32) - exact) <= Fraction(len(pairs), 1 << 33)


def test_two_hundred_orders_of_batches_of_one():
    """Lengths whose inverses are no multiples of a power of two, as nearly all are."""
    counts = [_count(Batch("de", pairs_of([(n, n + 3)]))) for n in range(3, 203)]
    generator = np.random.default_rng(1)
    orders = (generator.permutation(len(counts)) for _ in range(200))
    assert len({_sum([counts[place] for place in order]).tobytes() for order in orders}) == 1


def test_spread_by_hand():
    """Log ratios 0, 0.131 and -0.128, in bins around 0.01, 0.13 and -0.13: the MAD is 0.12."""
    lengths = [(100, 100)] * 40 + [(100, 114)] * 30 + [(100, 88)] * 30
    found = describe_lengths(Batch("de", pairs_of(lengths)))
    mean_variance = 0.013 + (70 / 100 + 30 / 114) / 100
    assert found.median == pytest.approx(0.01)
    assert found.spread == pytest.approx(1.4826 * 0.12 / math.sqrt(mean_variance), rel=1e-8)
    assert 1.1 < found.spread < 1.6
