"""Vocabulary files: what is written is read back, and every fault is named with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vocab import wordpiece_file
from vocab.wordpiece_file import RESERVED_TOKENS, VocabularyFileError

TOKENS = [*RESERVED_TOKENS, "a", "##a", "é", "##한국", "汉", "a\u00a0b"]
ORDINARY_TOKENS = st.lists(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\v\f\r"), min_size=1
    ).filter(lambda token: token not in RESERVED_TOKENS),
    unique=True,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "vocab.txt"


def put(path, tokens):
    path.write_bytes("".join(f"{token}\n" for token in tokens).encode("utf-8"))


def refused(call, *arguments):
    with pytest.raises(VocabularyFileError) as caught:
        call(*arguments)
    return caught.value


def test_reserved_tokens_have_the_published_ids():
    assert len(RESERVED_TOKENS) == 104
    assert RESERVED_TOKENS[0] == "[PAD]"
    assert RESERVED_TOKENS[1] == "[unused1]"
    assert RESERVED_TOKENS[99] == "[unused99]"
    assert RESERVED_TOKENS[100:] == ("[UNK]", "[CLS]", "[SEP]", "[MASK]")


def test_reads_what_it_writes(path):
    wordpiece_file.write(path, TOKENS)
    assert wordpiece_file.read(path) == TOKENS
    assert path.read_bytes().startswith(b"[PAD]\n[unused1]\n")
    assert path.read_bytes().endswith("\n汉\na\u00a0b\n".encode())
    assert [file.name for file in path.parent.iterdir()] == ["vocab.txt"]


@given(ORDINARY_TOKENS)
def test_reads_any_tokens_that_it_writes(tmp_path_factory, tokens):
    path = tmp_path_factory.getbasetemp() / "any-vocab.txt"
    wordpiece_file.write(path, [*RESERVED_TOKENS, *tokens])
    assert wordpiece_file.read(str(path)) == [*RESERVED_TOKENS, *tokens]


def test_the_last_line_may_lack_its_end(path):
    path.write_bytes("\n".join(TOKENS).encode("utf-8"))
    assert wordpiece_file.read(path) == TOKENS


def test_unicode_line_separators_do_not_end_a_line(path):
    tokens = [*RESERVED_TOKENS, "a\u2028b", "c\x85d"]
    put(path, tokens)
    assert wordpiece_file.read(path) == tokens


def test_a_missing_file(path):
    error = refused(wordpiece_file.read, path)
    assert (error.path, error.line) == (str(path), None)
    assert str(error) == f"{path}: no such file; check the path"


def test_a_folder(tmp_path):
    error = refused(wordpiece_file.read, tmp_path)
    assert str(error).startswith(f"{tmp_path}: cannot be read (")


def test_an_empty_file(path):
    path.write_bytes(b"")
    error = refused(wordpiece_file.read, path)
    assert str(error) == f"{path}: the file is empty; give one token per line"


def test_a_token_twice_names_both_lines(path):
    put(path, [*RESERVED_TOKENS, "a", "b", "a"])
    error = refused(wordpiece_file.read, path)
    assert (
        str(error) == f"{path}:107: the token 'a' is already on line 105; keep one of the two lines"
    )
    assert error.line == 107


def test_a_blank_line(path):
    put(path, [*RESERVED_TOKENS, "a", "", "b"])
    error = refused(wordpiece_file.read, path)
    assert str(error) == f"{path}:106: blank line; remove it or put its token back"


def test_a_blank_last_line(path):
    path.write_bytes("".join(f"{token}\n" for token in [*TOKENS, ""]).encode("utf-8"))
    assert refused(wordpiece_file.read, path).line == len(TOKENS) + 1


@pytest.mark.parametrize("token", [" ", "\t", " a", "a ", "a b", "\ta", "a\t", "a\tb", "a\fb"])
def test_white_space_in_a_token(path, token):
    put(path, [*RESERVED_TOKENS, token])
    error = refused(wordpiece_file.read, path)
    assert str(error) == (
        f"{path}:105: white space in the token {token!r}, which no word can match; "
        "remove the white space or the line"
    )


@pytest.mark.parametrize(
    ("special", "line"), [("[PAD]", 1), ("[UNK]", 101), ("[CLS]", 102), ("[SEP]", 103)]
)
def test_a_missing_special_token(path, special, line):
    put(path, ["other" if token == special else token for token in RESERVED_TOKENS])
    assert str(refused(wordpiece_file.read, path)) == (
        f"{path}:{line}: {special} is missing: it belongs on line {line} (id {line - 1}), "
        f"which holds 'other'; put {special} on line {line}"
    )


def test_a_missing_mask_at_the_end(path):
    put(path, RESERVED_TOKENS[:-1])
    assert str(refused(wordpiece_file.read, path)) == (
        f"{path}: [MASK] is missing: it belongs on line 104 (id 103), past the last line; "
        "put [MASK] on line 104"
    )


def test_a_special_token_elsewhere(path):
    put(path, ["first", *RESERVED_TOKENS])
    assert str(refused(wordpiece_file.read, path)) == (
        f"{path}:2: [PAD] must be on line 1 (id 0) but is on line 2; move it to line 1"
    )


def test_invalid_utf8(path):
    put(path, TOKENS)
    path.write_bytes(path.read_bytes() + b"good\nb\xffd\n")
    error = refused(wordpiece_file.read, path)
    line = len(TOKENS) + 2
    assert str(error) == f"{path}:{line}: invalid UTF-8 (byte 0xff); save the file as UTF-8"


def test_windows_line_ends(path):
    path.write_bytes(b"[PAD]\n[unused1]\r\n[unused2]\r\n")
    error = refused(wordpiece_file.read, path)
    assert str(error) == (
        f"{path}:2: carriage return (CRLF line end); save the file with LF line ends"
    )


def test_a_byte_order_mark(path):
    path.write_bytes(b"\xef\xbb\xbf[PAD]\n")
    error = refused(wordpiece_file.read, path)
    assert error.line == 1
    assert "byte order mark" in str(error)


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "[PAD]", "\ud800"])
def test_writing_a_bad_token_leaves_the_old_file(path, token):
    path.write_text("old")
    error = refused(wordpiece_file.write, path, [*RESERVED_TOKENS, token])
    assert error.line == 105
    assert path.read_text() == "old"
    assert [file.name for file in path.parent.iterdir()] == ["vocab.txt"]


def test_a_failed_write_leaves_no_temporary_file(path):
    path.mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(OSError, match=r"vocab\.txt"):
        wordpiece_file.write(path, TOKENS)
    assert [file.name for file in path.parent.iterdir()] == ["vocab.txt"]


def test_check_alone():
    wordpiece_file.check(TOKENS, "made-up.txt")
    error = refused(wordpiece_file.check, [], "made-up.txt")
    assert str(error).startswith("made-up.txt: ")
    assert isinstance(error, ValueError)


def test_the_public_multilingual_bert_layout_is_accepted(tmp_path):
    # Its lines 105 and 106 hold two markers of its own; then come characters and pieces.
    unused = [f"[unused{number}]" for number in range(1, 100)]
    special = ["[PAD]", *unused, "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<S>", "<T>"]
    tokens = [*special, "!", "ء", "一", "##一", "der", "##ση", "Москва"]
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), "utf-8")
    assert wordpiece_file.read(path) == tokens


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
