"""Which pieces some languages need: by hand, and that what is kept splits text as before."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vocab.pruning import PieceCounter, kept_ids, pieces_of_scripts
from vocab.wordpiece import WordPiece
from vocab.wordpiece_file import RESERVED_TOKENS

PIECES = [
    "a",
    "##a",
    "ab",
    "##ab",
    "b",
    "##b",
    "c",
    "##c",
    "é",
    "##é",
    ".",
    "猫",
    "##猫",
    "ไ",
    "##ท",
]
TOKENS = [*RESERVED_TOKENS, *PIECES]


def counted(texts, tokens=TOKENS):
    counter = PieceCounter(WordPiece(tokens, max_bytes_per_word=100))
    for text in texts:
        counter.add(text)
    return counter


def kept(pieces):
    ids = kept_ids(TOKENS, pieces)
    assert ids[: len(RESERVED_TOKENS)] == list(range(len(RESERVED_TOKENS)))
    return [TOKENS[number] for number in ids[len(RESERVED_TOKENS) :]]


@pytest.mark.parametrize(
    ("texts", "pieces"),
    [
        # Single characters at both places, so that other words of these letters are spelled.
        (["ab."], ["a", "##a", "ab", "b", "##b", "."]),
        (["aab"], ["a", "##a", "##ab", "b", "##b"]),
        (["猫"], ["猫", "##猫"]),
        # What the vocabulary cannot spell brings nothing but [UNK].
        (["x"], []),
        ([], []),
    ],
)
def test_kept_pieces(texts, pieces):
    assert kept(counted(texts).pieces) == pieces


@pytest.mark.parametrize(
    ("scripts", "pieces"),
    [
        (["Latn"], ["a", "##a", "ab", "##ab", "b", "##b", "c", "##c", "é", "##é", "."]),
        (["Hani"], [".", "猫", "##猫"]),
        (["Thai"], [".", "ไ", "##ท"]),
        (["Hani", "Thai"], [".", "猫", "##猫", "ไ", "##ท"]),
    ],
)
def test_pieces_of_scripts(scripts, pieces):
    assert kept(pieces_of_scripts(TOKENS, scripts)) == pieces


def test_a_joiner_alone_is_punctuation():
    assert pieces_of_scripts(["##", "#", "a"], ["Thai"]) == {"##", "#"}


def test_every_tenth_text_tells_what_others_would_lose():
    # The tenth needs what the others do, the twentieth a piece more.
    texts = ["ab"] * 19 + ["abc"]
    assert counted(texts[:10]).changed_share() == 0
    assert counted(texts).changed_share() == 0.5
    assert counted(texts).texts == 20
    # It keeps its pieces all the same.
    assert "##c" in counted(texts).pieces
    assert math.isnan(counted(["ab"]).changed_share())


@settings(max_examples=200)
@given(
    st.lists(st.text("abcé.x猫ไท ", max_size=12), max_size=5),
    st.lists(st.sampled_from(PIECES), unique=True),
    st.text("abcé.", max_size=12),
)
def test_counted_texts_keep_their_pieces(texts, pieces, other):
    tokens = [*RESERVED_TOKENS, *pieces]
    whole = WordPiece(tokens, max_bytes_per_word=100)
    ids = kept_ids(tokens, counted(texts, tokens).pieces)
    assert ids == sorted(set(ids))
    restricted = WordPiece([tokens[number] for number in ids], max_bytes_per_word=100)
    for text in texts:
        assert restricted.tokenize(text) == whole.tokenize(text)
    # Another one has pieces of the vocabulary, too, or is unknown.
    assert set(restricted.tokenize(other)) <= {*tokens}
