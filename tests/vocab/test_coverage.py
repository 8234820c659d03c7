"""Coverage: counted by hand, and what holds for any text."""

from __future__ import annotations

import math

import pytest

from vocab.coverage import Coverage, CoverageMeter, add_up
from vocab.wordpiece import WordPiece

PIECES = ["a", "b", "ab", "##b", "ไ", "##ท", "##ย", "."]


def measure(*texts, limit=9, max_length=5):
    meter = CoverageMeter(WordPiece(PIECES, max_bytes_per_word=limit), max_length=max_length)
    for text in texts:
        meter.add("xx", text)
    return meter.languages.get("xx")


@pytest.mark.parametrize(
    "text, words, unknown, too_long, tokens, characters, unknown_characters, truncated",
    [
        # a | b: words, tokens and characters are one each.
        ("a b", 2, 0, 0, 2, 2, 0, 0),
        # ab | ##b . : with [CLS] and [SEP] exactly the 5 tokens that are allowed.
        ("abb.", 2, 0, 0, 3, 4, 0, 0),
        # One token more is too many.
        ("abb. a", 3, 0, 0, 4, 5, 0, 1),
        # An unknown letter makes its word unknown, all three characters of it.
        ("axa a", 2, 1, 0, 2, 4, 3, 0),
        # 9 bytes are allowed, a word of 12 is unknown though the pieces could spell it.
        ("ไทย", 1, 0, 0, 3, 3, 0, 0),
        ("ไทยท", 1, 1, 1, 1, 4, 4, 0),
        # Characters that divide words are not counted.
        ("a\u200ba\t a", 3, 0, 0, 3, 3, 0, 0),
    ],
)
def test_counts_by_hand(
    text, words, unknown, too_long, tokens, characters, unknown_characters, truncated
):
    counts = (words, unknown, too_long, tokens, characters, unknown_characters, truncated)
    assert measure(text) == Coverage(1, *counts)


def test_languages_are_told_apart_and_a_text_without_words_is_no_sentence():
    meter = CoverageMeter(WordPiece(PIECES, max_bytes_per_word=9))
    for language, text in [
        ("th", "ไทย"),
        ("en", "a b"),
        ("th", "ไ"),
        ("en", ""),
        ("de", " \u200b"),
    ]:
        meter.add(language, text)
    assert meter.languages == {
        "th": Coverage(sentences=2, words=2, tokens=4, characters=4),
        "en": Coverage(sentences=1, words=2, tokens=2, characters=2),
    }


def test_rates_by_hand():
    counts = Coverage(4, 10, 2, 1, 20, 50, 14, 1)
    assert (counts.unknown_rate, counts.lost_rate, counts.too_long_rate) == (0.1, 0.28, 0.1)
    # 36 characters in 18 tokens.
    rates = (counts.characters_per_token, counts.tokens_per_sentence, counts.truncated_rate)
    assert rates == (2.0, 5.0, 0.25)
    assert add_up([counts, Coverage(*range(8)), counts]) == Coverage(8, 21, 6, 5, 44, 105, 34, 9)
    nothing_known = measure("xyz")
    assert math.isnan(nothing_known.characters_per_token) and nothing_known.lost_rate == 1.0


def test_refuses_a_length_without_room():
    with pytest.raises(ValueError, match="max_length is 2; give 3 or more"):
        measure(max_length=2)
