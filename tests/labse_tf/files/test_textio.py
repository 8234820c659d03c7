"""Lines and pairs from files: errors name the file and the line."""

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
from labse_tf.files.textio import lines_of_stream, open_to_write, read_lines, read_pairs

COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
EACH = pytest.mark.parametrize("extension", COMPRESS)
EACH_COMPRESSION = pytest.mark.parametrize("extension", [one for one in COMPRESS if one])


def put(folder, data, extension="", name="de.txt"):
    path = folder / f"{name}{extension}"
    path.write_bytes(COMPRESS[extension](data if isinstance(data, bytes) else data.encode("utf-8")))
    return path


def refused(read, path):
    with pytest.raises(InputError) as caught:
        list(read(path))
    assert caught.value.path == str(path)
    return caught.value


LINES = {
    "a\nb\n": ["a", "b"],
    "a\nb": ["a", "b"],
    "a\r\nb\r\n": ["a", "b"],
    "a\r\nb\r": ["a", "b"],
    "\n": [""],
    "a\n\n\nb\n": ["a", "", "", "b"],
    "a\n\n": ["a", ""],
    " a \t\n": [" a \t"],
    "a\rb\n": ["a\rb"],
    "a\u2028b\u2029c\u0085d\x0be\x0cf": ["a\u2028b\u2029c\u0085d\x0be\x0cf"],
    "ภาษาไทย\n日本語\nعربي\n👍🏽\n": ["ภาษาไทย", "日本語", "عربي", "👍🏽"],
}


@EACH
def test_lines(tmp_path, extension):
    for text, lines in LINES.items():
        assert list(read_lines(put(tmp_path, text, extension))) == list(enumerate(lines, start=1))
    # 3 MB: lines and characters of several bytes are cut by the chunks that are read.
    lines = [f"{number} {'ไทย' * (number % 50)}" for number in range(18_000)]
    path = tmp_path / f"long.txt{extension}"
    with open_to_write(tmp_path / "a.partial", name=path) as file:
        file.write("\n".join(lines))
    (tmp_path / "a.partial").rename(path)
    assert [line for _, line in read_lines(path)] == lines


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


@EACH
def test_missing_empty_and_invalid_files(tmp_path, extension):
    for path in (tmp_path / "none.txt", tmp_path):
        error = refused(read_lines, path)
        assert (error.problem, error.line) == ("no such file", None)
    assert "is empty" in refused(read_lines, put(tmp_path, b"", extension)).problem
    for data, line, byte in (
        (b"\xff\n", 1, 0),
        ("gut\nGrö".encode() + b"\xdfe\nmehr\n", 2, 4),
        (b"a\nb\n\xe0\xb8\nc\n", 3, 0),
    ):
        error = refused(read_lines, put(tmp_path, data, extension))
        assert f"invalid UTF-8 at byte {byte} " in error.problem and error.line == line


@EACH_COMPRESSION
def test_compressed_files(tmp_path, extension):
    """They may be concatenated, but not cut off or of another format."""
    pack = COMPRESS[extension]
    path = tmp_path / f"de.txt{extension}"
    path.write_bytes(pack(b"a\n") + pack(b"b\n"))
    assert list(read_lines(path)) == [(1, "a"), (2, "b")]
    # Text that compresses badly, so that half of the file holds many lines.
    generator = random.Random(1)
    data = pack("".join(f"{generator.random()} größer\n" for _ in range(5000)).encode("utf-8"))
    path.write_bytes(data[: len(data) // 2])
    error = refused(read_lines, path)
    assert "damaged or truncated" in error.problem and error.line >= 1
    path.write_bytes(pack(b"one\ntwo\nthree\n")[:-3])
    assert "damaged or truncated" in refused(read_lines, path).problem
    path.write_bytes(b"plain text, many words of it\n" * 20)
    error = refused(read_lines, path)
    assert "damaged or truncated" in error.problem and error.line == 1
    if extension != ".bz2":  # Its bytes are UTF-8.
        assert refused(read_lines, put(tmp_path, pack(b"one\ntwo\n"))).problem == "is compressed"


def test_a_long_window_of_zstd(tmp_path):
    """As by `zstd --long=30`; the usual limit of decoders is 128 MiB."""
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    stream = io.BytesIO()
    with compressor.stream_writer(stream, closefd=False) as writer:
        writer.write("Guten Morgen.\nสวัสดี\n".encode())
    path = tmp_path / "de.txt.zst"
    path.write_bytes(stream.getvalue())
    assert zstandard.get_frame_parameters(stream.getvalue()).window_size == 1 << 30
    assert [line for _, line in read_lines(path)] == ["Guten Morgen.", "สวัสดี"]


def test_pairs(tmp_path):
    text = "Hello\tHallo\n Bye \t Tschüs \tignored\t\r\nx\u2028y\tz"
    found = [(1, "Hello", "Hallo"), (2, "Bye", "Tschüs"), (3, "x\u2028y", "z")]
    assert list(read_pairs(put(tmp_path, text, name="de.tsv"))) == found
    for text, line, problem in (
        ("Hello\tHallo\nHello\n", 2, "one column"),
        ("Hello\tHallo\n\n", 2, "one column"),
        ("\tHallo\n", 1, "the source column is empty"),
        ("Hello\t\n", 1, "the target column is empty"),
        ("a\tb\na\tb\n  \t \n", 3, "the source column is empty"),
        ("a\t\u3000\u00a0\n", 1, "the target column is empty"),
        ("a\tb\na\teins\rtwo\tzwei\na\tb\n", 2, "carriage return"),
    ):
        error = refused(read_pairs, put(tmp_path, text, name="de.tsv"))
        assert error.line == line and problem in error.problem
    # Pairs before a damaged place are read, even within the first lines, which tell the columns.
    lines = "".join(f"{number} cats\t{number} Katzen\n" for number in range(5))
    path = tmp_path / "cut.tsv.gz"
    path.write_bytes(gzip.compress(lines.encode())[:-12])
    pairs = read_pairs(path)
    assert next(pairs)[1:] == ("0 cats", "0 Katzen")
    assert "damaged or truncated" in refused(lambda _: pairs, path).problem
