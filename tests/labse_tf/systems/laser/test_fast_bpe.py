"""fastBPE's merges: answers worked out by hand, and what holds for any word."""

from __future__ import annotations

import pytest
from text_files import write_lines

from labse_tf.errors import InputError
from labse_tf.systems.laser.tokenizers import FastBpe

CODES = ["l o 9", "e r</w> 8", "lo w</w> 7", "lo w 6", "a a 5", "aa aa 4", "low er</w> 3"]
CODES += ["猫 犬</w> 2"]
VOCABULARY = ["l@@", "o@@", "w@@", "lo@@", "low@@", "er", "low", "a@@", "a", "aa@@", "e@@", "r"]
VOCABULARY += ["猫@@"]


def written(folder, codes, vocabulary):
    vocabulary = [f"{piece} 3" for piece in vocabulary]
    return write_lines(folder / "bpe.codes", codes), write_lines(folder / "bpe.vocab", vocabulary)


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
        # Each pair from the left: aa aa a</w>, aaaa a</w>; the vocabulary lacks aaaa@@.
        ("aaaaa", "aa@@ aa@@ a"),
        ("aa", "a@@ a"),  # a a</w> is no pair of the codes.
        # Split down to characters, which stay whether known or not.
        ("猫犬", "猫@@ 犬"),
        ("xer", "x@@ er"),
        ("e\u0301", "e@@ \u0301"),
        ("", ""),
    ],
)
def test_by_hand(bpe, word, expected):
    assert " ".join(bpe.split(word)) == expected


def test_an_unknown_part_is_split_further(tmp_path):
    bpe = FastBpe(*written(tmp_path, CODES, ["l@@", "o@@", "w"]))
    assert bpe.split("low") == ("l@@", "o@@", "w")


def test_other_files_are_refused(tmp_path):
    for name, line in (("codes", "#version: 0.2"), ("codes", "l  3"), ("vocab", "low")):
        files = written(tmp_path, ["l o 3"], ["lo"])
        write_lines(tmp_path / f"bpe.{name}", ["l o 3" if name == "codes" else "lo 3", line])
        with pytest.raises(InputError, match="as fastBPE writes it") as caught:
            FastBpe(*files)
        assert (caught.value.path, caught.value.line) == (str(tmp_path / f"bpe.{name}"), 2)
