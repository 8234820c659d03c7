"""Coverage: counted by hand, and what holds for any text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocab.coverage import Coverage, CoverageMeter, add_up
from vocab.wordpiece import WordPiece

PIECES = ["a", "b", "ab", "##b", "ไ", "##ท", "##ย", "."]


def measure(*texts, limit=9, max_length=5):
    meter = CoverageMeter(WordPiece(PIECES, max_bytes_per_word=limit), max_length=max_length)
    for text in texts:
        meter.add("xx", text)
    return meter.languages.get("xx")


def unknown(words, characters):
    return {"unknown_words": words, "unknown_characters": characters}


@pytest.mark.parametrize(
    "text, counts",
    [
        # a | b: words, tokens and characters are one each.
        ("a b", {"words": 2, "tokens": 2, "characters": 2}),
        # ab | ##b . : with [CLS] and [SEP] exactly the 5 tokens that are allowed.
        ("abb.", {"words": 2, "tokens": 3, "characters": 4}),
        # One token more is too many.
        ("abb. a", {"words": 3, "tokens": 4, "characters": 5, "truncated_sentences": 1}),
        # An unknown letter makes its word unknown, all three characters of it.
        ("axa a", {"words": 2, "tokens": 2, "characters": 4, **unknown(1, 3)}),
        # 9 bytes are allowed, a word of 12 is unknown though the pieces could spell it.
        ("ไทย", {"words": 1, "tokens": 3, "characters": 3}),
        ("ไทยท", {"words": 1, "tokens": 1, "characters": 4, **unknown(1, 4), "too_long_words": 1}),
        # Characters that divide words are not counted.
        ("a\u200ba\t a", {"words": 3, "tokens": 3, "characters": 3}),
    ],
)
def test_counts_by_hand(text, counts):
    assert measure(text) == Coverage(sentences=1, **counts)


@pytest.mark.parametrize("text", ["", " \t", "\u200b"])
def test_a_text_without_words_is_no_sentence(text):
    assert measure(text) is None
    assert measure("a", text) == measure("a")


def test_languages_are_told_apart():
    meter = CoverageMeter(WordPiece(PIECES, max_bytes_per_word=9))
    for language, text in [("th", "ไทย"), ("en", "a b"), ("th", "ไ")]:
        meter.add(language, text)
    assert meter.languages == {
        "th": Coverage(sentences=2, words=2, tokens=4, characters=4),
        "en": Coverage(sentences=1, words=2, tokens=2, characters=2),
    }


def test_rates_by_hand():
    counts = Coverage(
        sentences=4, words=10, unknown_words=2, too_long_words=1, tokens=20, characters=50,
        unknown_characters=14, truncated_sentences=1,
    )  # fmt: skip
    assert counts.unknown_rate == 0.1
    assert counts.lost_rate == 0.28
    assert counts.too_long_rate == 0.1
    assert counts.characters_per_token == 2.0  # 36 characters in 18 tokens
    assert counts.tokens_per_sentence == 5.0
    assert counts.truncated_rate == 0.25

    nothing_known = measure("xyz")
    assert math.isnan(nothing_known.characters_per_token) and nothing_known.lost_rate == 1.0


def test_refuses_a_length_without_room():
    with pytest.raises(ValueError, match="max_length is 2; give 3 or more"):
        measure(max_length=2)


TEXTS = st.lists(st.text("abx.ไทย \u200b", max_size=40), max_size=10)


@given(TEXTS, st.integers(1, 40), st.integers(3, 30))
def test_parts_never_pass_their_wholes_and_add_up_to_them(texts, limit, max_length):
    counts = measure(*texts, limit=limit, max_length=max_length) or Coverage()
    assert counts.too_long_words <= counts.unknown_words <= counts.words <= counts.tokens
    assert counts.unknown_words <= counts.unknown_characters <= counts.characters
    assert counts.truncated_sentences <= counts.sentences <= len(texts)
    single = [measure(text, limit=limit, max_length=max_length) for text in texts]
    assert add_up(one for one in single if one is not None) == counts
    # A higher limit never loses more.
    higher = measure(*texts, limit=limit + 7) or Coverage()
    assert higher.unknown_characters <= counts.unknown_characters
    assert higher.too_long_words <= counts.too_long_words
    assert (higher.words, higher.characters) == (counts.words, counts.characters)
