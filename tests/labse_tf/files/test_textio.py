"""Lines and pairs from files: whatever is wrong is said with file and line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.errors import InputError
from labse_tf.files.textio import (
    lines_of_stream,
    open_to_write,
    read_lines,
    read_moses,
    read_pairs,
    split_pair,
)

COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
COMPRESSED = [extension for extension in COMPRESS if extension]


def put(folder, data, name="de.txt"):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    return path


def refused(read, path):
    with pytest.raises(InputError) as caught:
        list(read(path))
    assert caught.value.path == str(path)
    return caught.value


@pytest.mark.parametrize(
    "text, lines",
    [
        ("a\nb\n", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\nb\r", ["a", "b"]),
        ("\n", [""]),
        ("a\n\n\nb\n", ["a", "", "", "b"]),
        ("a\n\n", ["a", ""]),
        (" a \t\n", [" a \t"]),
        ("a\rb\n", ["a\rb"]),
        ("eins\u2028zwei\u2029drei\u0085vier\x0bfünf\x0csechs\n", None),
        ("ภาษาไทย\n日本語\nعربي\n👍🏽\n", ["ภาษาไทย", "日本語", "عربي", "👍🏽"]),
    ],
)
@pytest.mark.parametrize("extension", COMPRESS)
def test_lines(tmp_path, extension, text, lines):
    path = put(tmp_path, COMPRESS[extension](text.encode("utf-8")), f"de.txt{extension}")
    if lines is None:
        lines = [text.removesuffix("\n")]
    assert list(read_lines(path)) == list(enumerate(lines, start=1))


@settings(max_examples=30)
@given(
    lines=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r")), min_size=1
    ),
    extension=st.sampled_from(list(COMPRESS)),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_lines_come_back(lines, extension, end):
    data = COMPRESS[extension]("".join(line + end for line in lines).encode("utf-8"))
    found = list(lines_of_stream(io.BytesIO(data), f"stdin{extension}"))
    assert found == list(enumerate(lines, start=1))


@pytest.mark.parametrize("extension", COMPRESS)
def test_lines_across_chunks(tmp_path, extension):
    """3 MB: lines and characters of several bytes are cut by the chunks that are read."""
    lines = [f"{number} {'ไทย' * (number % 50)}" for number in range(25_000)]
    data = "\n".join(lines).encode("utf-8")
    assert len(data) > 3_000_000
    path = put(tmp_path, COMPRESS[extension](data), f"th.txt{extension}")
    assert [line for _, line in read_lines(path)] == lines


@pytest.mark.parametrize("extension", COMPRESSED)
def test_compressed_files_may_be_concatenated(tmp_path, extension):
    data = COMPRESS[extension](b"a\n") + COMPRESS[extension](b"b\n")
    path = put(tmp_path, data, f"de.txt{extension}")
    assert list(read_lines(path)) == [(1, "a"), (2, "b")]


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        error = refused(read_lines, path)
        assert (error.problem, error.line) == ("no such file", None)


@pytest.mark.parametrize("extension", COMPRESS)
def test_empty_file(tmp_path, extension):
    path = put(tmp_path, COMPRESS[extension](b""), f"de.txt{extension}")
    assert "is empty" in refused(read_lines, path).problem


@pytest.mark.parametrize("extension", COMPRESSED)
def test_truncated_file(tmp_path, extension):
    # Text that compresses badly, so that half of the file holds many lines.
    generator = random.Random(1)
    text = "".join(f"{generator.random()} größer\n" for _ in range(5000))
    data = COMPRESS[extension](text.encode("utf-8"))
    path = put(tmp_path, data[: len(data) // 2], f"de.txt{extension}")
    error = refused(read_lines, path)
    assert "damaged or truncated" in error.problem
    assert error.line is not None and error.line >= 1


@pytest.mark.parametrize("extension", COMPRESSED)
def test_file_that_lacks_its_last_bytes(tmp_path, extension):
    data = COMPRESS[extension](b"one\ntwo\nthree\n")
    path = put(tmp_path, data[:-3], f"de.txt{extension}")
    assert "damaged or truncated" in refused(read_lines, path).problem


def test_pairs_before_a_damaged_place_are_read(tmp_path):
    """Even if it lies within the first lines, which tell the columns."""
    lines = "".join(f"{number} cats\t{number} Katzen\n" for number in range(5))
    path = put(tmp_path, gzip.compress(lines.encode())[:-12], "de.tsv.gz")
    pairs = read_pairs(path)
    assert next(pairs)[1:] == ("0 cats", "0 Katzen")
    assert "damaged or truncated" in refused(lambda _: pairs, path).problem


@pytest.mark.parametrize("extension", COMPRESSED)
def test_file_that_is_not_compressed_at_all(tmp_path, extension):
    path = put(tmp_path, "plain text, many words of it\n" * 20, f"de.txt{extension}")
    error = refused(read_lines, path)
    assert "damaged or truncated" in error.problem
    assert error.line == 1


@pytest.mark.parametrize("extension", COMPRESS)
@pytest.mark.parametrize(
    "data, line, byte",
    [
        (b"\xff\n", 1, 0),
        ("gut\nGrö".encode() + b"\xdfe\nmehr\n", 2, 4),
        (b"a\nb\n\xe0\xb8\nc\n", 3, 0),
    ],
)
def test_invalid_utf_8(tmp_path, extension, data, line, byte):
    path = put(tmp_path, COMPRESS[extension](data), f"de.txt{extension}")
    error = refused(read_lines, path)
    assert error.line == line
    assert f"invalid UTF-8 at byte {byte} " in error.problem
    assert str(error).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize("extension", [".gz", ".xz", ".zst"])
def test_a_packed_file_of_another_name_is_known(tmp_path, extension):
    path = put(tmp_path, COMPRESS[extension](b"one\ntwo\n"))
    with pytest.raises(InputError, match="is compressed; unpack it"):
        list(read_lines(path))


@pytest.mark.parametrize("extension", COMPRESS)
def test_what_is_written_is_packed_as_its_name_tells(tmp_path, extension):
    path = tmp_path / f"a.txt{extension}"
    with open_to_write(tmp_path / "a.partial", name=path) as file:
        file.write("แมว\nقطة\n")
    (tmp_path / "a.partial").rename(path)
    assert list(read_lines(path)) == [(1, "แมว"), (2, "قطة")]


def test_pairs(tmp_path):
    path = put(tmp_path, "Hello\tHallo\n Bye \t Tschüs \tignored\t\r\nx\u2028y\tz", "de.tsv")
    assert list(read_pairs(path)) == [
        (1, "Hello", "Hallo"),
        (2, "Bye", "Tschüs"),
        (3, "x\u2028y", "z"),
    ]


@pytest.mark.parametrize(
    "text, line, problem",
    [
        ("Hello\tHallo\nHello\n", 2, "one column"),
        ("Hello\tHallo\n\n", 2, "one column"),
        ("\tHallo\n", 1, "the source column is empty"),
        ("Hello\t\n", 1, "the target column is empty"),
        ("a\tb\na\tb\n  \t \n", 3, "the source column is empty"),
        ("a\t\u3000\u00a0\n", 1, "the target column is empty"),
    ],
)
def test_broken_pairs(tmp_path, text, line, problem):
    path = put(tmp_path, text, "de.tsv")
    error = refused(read_pairs, path)
    assert error.line == line
    assert problem in error.problem


def test_split_pair_names_what_it_is_told():
    with pytest.raises(InputError) as caught:
        split_pair("alone", "gs://bucket/de.tsv", 17)
    assert str(caught.value).startswith("gs://bucket/de.tsv:17: one column")


def write_moses(folder, english, foreign):
    paths = (folder / "N.en-de.en", folder / "N.en-de.de")
    for path, text in zip(paths, (english, foreign), strict=True):
        path.write_text(text, "utf-8")
    return paths


def test_a_moses_pair(tmp_path):
    paths = write_moses(tmp_path, "Yes \nNo\n", "Ja\n Nein")
    assert list(read_moses(*paths)) == [(1, "Yes", "Ja"), (2, "No", "Nein")]


@pytest.mark.parametrize(
    "english, foreign, side, line, problem",
    [
        ("a\nb\n", "c\n", 1, 1, "the last line, but .*en has more"),
        ("a\n", "c\nd\n", 0, 1, "the last line, but .*de has more"),
        ("a\nb\n", "c\n \n", 1, 2, "the line is empty"),
    ],
)
def test_broken_moses_pairs(tmp_path, english, foreign, side, line, problem):
    paths = write_moses(tmp_path, english, foreign)
    with pytest.raises(InputError, match=problem) as caught:
        list(read_moses(*paths))
    assert (caught.value.path, caught.value.line) == (str(paths[side]), line)
