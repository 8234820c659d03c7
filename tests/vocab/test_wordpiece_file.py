"""Vocabulary files: what is written is read back, and every fault is named with its line."""

from __future__ import annotations

import pytest

from vocab import wordpiece_file
from vocab.wordpiece_file import RESERVED_TOKENS, VocabularyFileError

TOKENS = [*RESERVED_TOKENS, "a", "##a", "é", "##한국", "汉", "a\u00a0b", "a\u2028b", "c\x85d", "\0"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "vocab.txt"


def lines(tokens):
    return "".join(f"{token}\n" for token in tokens).encode("utf-8")


def test_reserved_tokens_have_the_published_ids():
    unused = [f"[unused{number}]" for number in range(1, 100)]
    assert [*RESERVED_TOKENS] == ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_reads_what_it_writes(path):
    wordpiece_file.write(path, TOKENS)
    assert wordpiece_file.read(path) == TOKENS
    assert path.read_bytes() == lines(TOKENS)
    assert [file.name for file in path.parent.iterdir()] == ["vocab.txt"]
    # The last line may lack its end.
    path.write_bytes("\n".join(TOKENS).encode("utf-8"))
    assert wordpiece_file.read(path) == TOKENS


def without(special):
    return lines("other" if token == special else token for token in RESERVED_TOKENS)


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (None, None, "no such file"),
        ("a folder", None, "cannot be read"),
        (b"", None, "the file is empty"),
        (lines([*RESERVED_TOKENS, "a", "b", "a"]), 107, "'a' is already on line 105"),
        (lines([*RESERVED_TOKENS, "a", "", "b"]), 106, "blank line"),
        (lines([*TOKENS, ""]), len(TOKENS) + 1, "blank line"),
        (lines(RESERVED_TOKENS[:-1]), None, "[MASK] must be on line 104 (id 103) but is missing"),
        (lines(["first", *RESERVED_TOKENS]), 2, "[PAD] must be on line 1 (id 0) but is on line 2"),
        (lines(TOKENS) + b"good\nb\xffd\n", len(TOKENS) + 2, "invalid UTF-8 (byte 0xff)"),
        (b"[PAD]\n[unused1]\r\n[unused2]\r\n", 2, "carriage return"),
        (b"\xef\xbb\xbf[PAD]\n", 1, "byte order mark"),
        *(
            (without(special), line, f"{special} must be on line {line} (id")
            for special, line in (("[PAD]", 1), ("[UNK]", 101), ("[CLS]", 102), ("[SEP]", 103))
        ),
        *(
            (lines([*RESERVED_TOKENS, token]), 105, f"white space in the token {token!r}")
            for token in (" ", "\t", " a", "a ", "a b", "\ta", "a\t", "a\fb")
        ),
    ],
)
def test_faults_are_named_with_their_line(path, data, line, problem):
    if data == "a folder":
        path.mkdir()
    elif data is not None:
        path.write_bytes(data)
    with pytest.raises(VocabularyFileError) as caught:
        wordpiece_file.read(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert problem in str(caught.value) and "; " in str(caught.value)


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "[PAD]", "\ud800"])
def test_writing_a_bad_token_leaves_the_old_file(path, token):
    path.write_text("old")
    with pytest.raises(VocabularyFileError) as caught:
        wordpiece_file.write(path, [*RESERVED_TOKENS, token])
    assert caught.value.line == 105
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["vocab.txt"]


def test_a_failed_write_leaves_no_temporary_file(path):
    path.mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(OSError, match=r"vocab\.txt"):
        wordpiece_file.write(path, TOKENS)
    assert [file.name for file in path.parent.iterdir()] == ["vocab.txt"]


def test_tokens_that_others_strip_or_divide():
    tokens = [
        *("##a", "##a\u00a0", "a\u00a0b", "\u3000", "b", "\u2009c", "d\ufeff"),
        *("e\x85f", "g\u2028h", "i\u200b", "j\u202fk"),
    ]
    assert wordpiece_file.find_misread(tokens) == [1, 3, 5, 6, 7, 8]
    renamed = wordpiece_file.rename_misread(tokens)
    assert renamed == [
        *("##a", "[space1]", "a\u00a0b", "[space3]", "b", "[space5]", "[space6]"),
        *("[space7]", "[space8]", "i\u200b", "j\u202fk"),
    ]
    assert wordpiece_file.find_misread(renamed) == []
    assert wordpiece_file.find_misread(RESERVED_TOKENS) == []
