"""fastBPE's merges: answers worked out by hand, and what holds for any word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_files import write_lines

from labse_tf.errors import InputError
from labse_tf.systems.laser.tokenizers import CONTINUED, FastBpe

CODES = ["l o 9", "e r</w> 8", "lo w</w> 7", "lo w 6", "a a 5", "aa aa 4", "low er</w> 3"]
CODES += ["猫 犬</w> 2"]
VOCABULARY = ["l@@", "o@@", "w@@", "lo@@", "low@@", "er", "low", "a@@", "a", "aa@@", "e@@", "r"]
VOCABULARY += ["猫@@"]


def written(folder, codes, vocabulary):
    files = (folder / "bpe.codes", folder / "bpe.vocab")
    write_lines(files[0], codes)
    write_lines(files[1], [f"{piece} 3" for piece in vocabulary])
    return files


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    return FastBpe(*written(tmp_path_factory.mktemp("bpe"), CODES, VOCABULARY))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # l o w</w>: `l o` comes first, then `lo w</w>`.
        ("low", "low"),
        # l o w e r</w>: lo w er, low er, and lower</w>, which the vocabulary lacks: split again.
        ("lower", "low@@ er"),
        # The last character has another name: `lo w` does not hold for it.
        ("lowlow", "low@@ low"),
        # Each pair from the left: a a a a a</w> -> aa aa a</w> -> aaaa a</w>; the vocabulary lacks
        # aaaa@@, and so has it in halves.
        ("aaaaa", "aa@@ aa@@ a"),
        # a a</w> is no pair of the codes.
        ("aa", "a@@ a"),
        # Split down to characters, which stay whether known or not.
        ("猫犬", "猫@@ 犬"),
        ("x", "x"),
        ("xer", "x@@ er"),
        ("e\u0301", "e@@ \u0301"),
        ("", ""),
    ],
)
def test_by_hand(bpe, word, expected):
    assert " ".join(bpe.split(word)) == expected


def test_an_unknown_part_is_split_further(tmp_path):
    """low</w> -> lo w</w> -> l o w</w>."""
    bpe = FastBpe(*written(tmp_path, CODES, ["l@@", "o@@", "w"]))
    assert bpe.split("low") == ("l@@", "o@@", "w")


def in_order(word, codes):
    """All of the first merge, then of the second: the same, as a merge only makes later ones."""
    pieces = [*word[:-1], word[-1] + "</w>"]
    for left, right, _ in (line.split() for line in codes):
        place = 0
        while place < len(pieces) - 1:
            if pieces[place : place + 2] == [left, right]:
                pieces[place : place + 2] = [left + right]
            place += 1
    return pieces


@given(st.text("loweraxé猫犬", min_size=1))
def test_any_word_with_all_pieces_known_or_some(bpe, tmp_path_factory, word):
    pieces = in_order(word, CODES)
    expected = [f"{piece}@@" for piece in pieces[:-1]] + [pieces[-1].removesuffix("</w>")]
    files = written(tmp_path_factory.getbasetemp(), CODES, set(expected))
    assert list(FastBpe(*files).split(word)) == expected
    *first, last = bpe.split(word)
    assert "".join([*(piece.removesuffix(CONTINUED) for piece in first), last]) == word
    # A character, or a piece that the vocabulary has.
    for piece in (*first, last):
        assert piece in bpe.vocabulary or len(piece.removesuffix(CONTINUED)) == 1


@pytest.mark.parametrize(
    ("name", "line"),
    [("codes", "#version: 0.2"), ("codes", "l o x"), ("codes", "l  3"), ("vocab", "low")],
)
def test_other_files_are_refused(tmp_path, name, line):
    files = written(tmp_path, ["l o 3"], ["lo"])
    with open(tmp_path / f"bpe.{name}", "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    with pytest.raises(InputError, match="as fastBPE writes it") as caught:
        FastBpe(*files)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / f"bpe.{name}"), 2)
