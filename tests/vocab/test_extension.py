"""Pieces that a vocabulary lacks: the ones that shorten the text most, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vocab.extension import Spelling, find_pieces, measure
from vocab.wordpiece import WordPiece

LETTERS = ["[UNK]", *"abcd", *(f"##{letter}" for letter in "abcd")]


def find(tokens, words, add, **options):
    return find_pieces(tokens, words, add, max_bytes_per_word=100, **options)


@pytest.mark.parametrize(
    ("words", "add", "expected"),
    [
        # A whole "abcd" saves 3 of 4 tokens each time, "##cd" then none that are left.
        ({"abcd": 10, "ab": 7, "cc": 1}, 1, ["abcd"]),
        ({"abcd": 10, "ab": 7, "cc": 1}, 2, ["abcd", "ab"]),
        # An unknown letter comes with the pieces that need it: 3 * 30, 50 and 2 tokens.
        ({"ab": 50, "ñañ": 30, "ñ": 2}, 3, ["ñañ", "ab", "ñ"]),
        ({"a": 5, "cd": 1}, 10, []),
    ],
)
def test_what_saves_most_comes_first(words, add, expected):
    assert find(LETTERS, {"xx": words}, add) == expected


def test_the_spelling_of_words():
    pieces = WordPiece(LETTERS, max_bytes_per_word=100)
    assert measure(pieces, {"abc": 4, "ñ": 2}) == Spelling(words=6, tokens=14, unknown=2)


def test_small_languages_get_their_share():
    words = {
        "xx": {"abab": 10_000, "baba": 9000, "abba": 4000, "baab": 3000},
        "yy": {"cdcd": 10, "dcdc": 9, "cddc": 4, "dccd": 3},
    }
    even = find(LETTERS, words, 4, smoothing_exponent=0.0)
    assert sorted("a" in piece for piece in even) == [False, False, True, True]
    by_size = find(LETTERS, words, 4, smoothing_exponent=1.0)
    assert all("a" in piece for piece in by_size)


@given(
    words=st.dictionaries(
        st.text("abcdñ", min_size=1, max_size=8), st.integers(1, 50), min_size=1, max_size=12
    ),
    add=st.integers(1, 20),
)
@settings(max_examples=30)
def test_text_becomes_shorter_and_nothing_is_lost(words, add):
    found = find(LETTERS, {"xx": words}, add)
    assert len(found) == len(set(found)) <= add and not set(found) & set(LETTERS)
    before, after = (
        measure(WordPiece(tokens, max_bytes_per_word=100), words)
        for tokens in (LETTERS, [*LETTERS, *found])
    )
    assert after.unknown <= before.unknown and after.words == before.words
    if not before.unknown:
        assert after.tokens <= before.tokens


@pytest.mark.parametrize("words, add", [({"xx": {"ab": 1}}, 0), ({}, 5)])
def test_refusals(words, add):
    with pytest.raises(ValueError):
        find(LETTERS, words, add)
