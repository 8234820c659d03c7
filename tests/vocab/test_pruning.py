"""Which pieces some languages need: by hand, and that what is kept splits text as before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocab.pruning import kept_ids, pieces_of_scripts
from vocab.wordpiece import WordPiece
from vocab.wordpiece_file import RESERVED_TOKENS

PIECES = "a ##a ab ##ab b ##b c ##c é ##é . 猫 ##猫 ไ ##ท".split()  # noqa: SIM905
TOKENS = [*RESERVED_TOKENS, *PIECES]


def pieces_of(texts, tokens=TOKENS):
    wordpiece = WordPiece(tokens, max_bytes_per_word=100)
    return {piece for text in texts for piece in wordpiece.tokenize(text)}


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
    assert kept(pieces_of(texts)) == pieces


@pytest.mark.parametrize(
    ("scripts", "pieces"),
    [
        (["Latn"], ["a", "##a", "ab", "##ab", "b", "##b", "c", "##c", "é", "##é", "."]),
        (["Hani", "Thai"], [".", "猫", "##猫", "ไ", "##ท"]),
    ],
)
def test_pieces_of_scripts(scripts, pieces):
    assert kept(pieces_of_scripts(TOKENS, scripts)) == pieces
    assert pieces_of_scripts(["##", "#", "a\u4e00\u0e01"], scripts) == {"##", "#"}


@given(
    st.lists(st.text("abcé.x猫ไท ", max_size=12), max_size=5),
    st.lists(st.sampled_from(PIECES), unique=True),
    st.text("abcé.", max_size=12),
)
def test_counted_texts_keep_their_pieces(texts, pieces, other):
    tokens = [*RESERVED_TOKENS, *pieces]
    whole = WordPiece(tokens, max_bytes_per_word=100)
    ids = kept_ids(tokens, pieces_of(texts, tokens))
    assert ids == sorted(set(ids))
    restricted = WordPiece([tokens[number] for number in ids], max_bytes_per_word=100)
    for text in texts:
        assert restricted.tokenize(text) == whole.tokenize(text)
    # Another one has pieces of the vocabulary, too, or is unknown.
    assert set(restricted.tokenize(other)) <= {*tokens}
