"""Smoothing weights: hand-worked values, the properties of the formula, and refused arguments."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocab.smoothing import smoothing_coefficients, weigh_counts

TOKEN_COUNTS = st.dictionaries(st.text(min_size=1), st.integers(1, 10**12), min_size=1, max_size=8)


def test_hand_worked_values():
    # Shares 0.8 and 0.2, square roots in the ratio 2 to 1, so smoothed shares 2/3 and 1/3.
    weights = smoothing_coefficients({"en": 800, "th": 200}, exponent=0.5)
    assert list(weights) == ["en", "th"]
    assert weights["en"] == pytest.approx(2 / 3 / 0.8)
    assert weights["th"] == pytest.approx(1 / 3 / 0.2)
    assert smoothing_coefficients({"en": 123}) == {"en": 1.0}
    words = {"en": {"a": 2, "b": 1}, "th": {"a": 1}}
    assert weigh_counts(words, {"en": 0.5, "de": 9.0, "th": 3.0}) == {"a": 4.0, "b": 0.5}


@given(TOKEN_COUNTS, st.floats(0, 1))
def test_totals(counts, exponent):
    """Exponent 1 changes nothing, 0 makes all languages equal; the total stays, ratios follow."""
    total, first, last = sum(counts.values()), min(counts), max(counts)
    for s in (0, exponent, 1):
        weights = smoothing_coefficients(counts, s)
        weighted = {language: weights[language] * count for language, count in counts.items()}
        assert math.fsum(weighted.values()) == pytest.approx(total)
        expected = (counts[first] / counts[last]) ** s
        assert weighted[first] / weighted[last] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("counts", "exponent", "problem"),
    [
        *(({"en": 1}, exponent, "exponent is") for exponent in (-0.1, 1.5, math.nan, math.inf)),
        *(({"th": n}, 0.3, "language 'th' has") for n in (0, -5, math.nan, math.inf)),
        ({}, 0.3, "token_counts is empty"),
    ],
)
def test_refusals(counts, exponent, problem):
    with pytest.raises(ValueError, match=problem):
        smoothing_coefficients(counts, exponent)
