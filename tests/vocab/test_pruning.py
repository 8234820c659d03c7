"""Which pieces some languages need: by hand, and that what is kept splits text as before."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocab.pruning import NeededPieces, kept_ids, pieces_of_scripts
from vocab.wordpiece import WordPiece
from vocab.wordpiece_file import RESERVED_TOKENS

PIECES = "a ##a ab ##ab b ##b c ##c é ##é . 猫 ##猫 ไ ##ท".split()  # noqa: SIM905
TOKENS = [*RESERVED_TOKENS, *PIECES]
LETTERS = [chr(0x4E00 + number) for number in range(1000)]


def counted(texts, tokens=TOKENS):
    counter = NeededPieces(WordPiece(tokens, max_bytes_per_word=100))
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
        # Words that the vocabulary cannot spell bring nothing but [UNK].
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
    assert pieces_of_scripts(["##", "#", "a\u4e00\u0e01"], scripts) == {"##", "#"}


def test_a_tenth_tells_what_others_would_lose():
    assert counted(["ab", "b"] * 500).changed_share() == 0
    # Every text has a piece that no other has. They keep their pieces all the same.
    counter = counted(LETTERS, [*RESERVED_TOKENS, *LETTERS])
    assert counter.changed_share() == 1 and counter.texts == len(counter.pieces) == 1000
    # Languages that take turns are both among them.
    counter = counted(["ab", "猫"] * 100 + ["é"] * 2)
    assert {frozenset({"ab"}), frozenset({"猫"})} <= set(counter._held_out)
    assert math.isnan(counted([]).changed_share())


def test_many_texts_are_not_all_held_in_memory(monkeypatch):
    monkeypatch.setattr("vocab.pruning._MOST_HELD_OUT", 20)
    counter = counted(LETTERS, [*RESERVED_TOKENS, *LETTERS])
    held_out = set().union(*counter._held_out)
    assert len(counter._held_out) == len(held_out) == 20
    assert held_out | counter._of_others == set(LETTERS) and not held_out & counter._of_others
    # From all of the corpus.
    places = sorted(LETTERS.index(piece) for piece in held_out)
    assert places[5] > 100 and places[-5] > 600 and places[0] < 300


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
