"""Embedding of files: rows in order, going on after a kill, faults; encoders of a few lines."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import textwrap
import zlib

import forked
import numpy as np
import pytest
from tiny_text import SENTENCES

from labse_tf.cli.main import main
from labse_tf.embedding.file import embed_lines
from labse_tf.embedding.quantisation import (
    QUANTISED,
    Int8,
    read_calibration,
    write_calibration,
)
from labse_tf.files.outputs import locked

DIM = 8


class CharacterEncoder:
    """The unit vector of a text's characters, each in one of DIM places."""

    sequence_length = 20

    def __init__(self) -> None:
        self.texts_cut = 0
        self.calls: list[int] = []

    def encode(self, texts):
        self.calls.append(len(texts))
        self.texts_cut += sum(len(text) > self.sequence_length for text in texts)
        return expected(texts)


def expected(texts) -> np.ndarray:
    vectors = np.zeros((len(texts), DIM), np.float32)
    for row, text in enumerate(texts):
        vectors[row, 0] = 1
        for character in text[: CharacterEncoder.sequence_length]:
            vectors[row, zlib.crc32(character.encode()) % DIM] += 1
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def chunks_of_3(monkeypatch):
    monkeypatch.setattr("labse_tf.embedding.file._LINES_PER_CHUNK", 3)


class Stopped(Exception):
    pass


class StoppingEncoder(CharacterEncoder):
    """Stops at its `last` call."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self._last = last

    def encode(self, texts):
        if len(self.calls) == self._last:
            raise Stopped
        return super().encode(texts)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, len(SENTENCES)])
def test_a_row_a_line(tmp_path, chunks_of_3, count):
    lines, encoder = SENTENCES[:count], CharacterEncoder()
    done = embed_lines(iter(lines), encoder, tmp_path / "out.npy")
    found = np.load(tmp_path / "out.npy", mmap_mode="r")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected(lines))
    assert (done.rows, done.lines_cut) == (count, sum(len(line) > 20 for line in lines))
    assert encoder.calls == [3] * (count // 3) + [count % 3] * (count % 3 > 0)


def test_float16(tmp_path):
    embed_lines(SENTENCES, CharacterEncoder(), tmp_path / "out.npy", dtype="float16")
    found = np.load(tmp_path / "out.npy")
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, expected(SENTENCES).astype(np.float16))


@pytest.mark.parametrize("dtype", list(QUANTISED))
@pytest.mark.parametrize("last", [0, 1, 2])
def test_quantised_vectors_are_calibrated_on_the_first_chunk(tmp_path, chunks_of_3, dtype, last):
    """Also if the job is stopped and goes on."""
    lines, path = SENTENCES[:8], tmp_path / "out.npy"
    with pytest.raises(Stopped):
        embed_lines(lines, StoppingEncoder(last), path, dtype=dtype)
    done = embed_lines(lines, CharacterEncoder(), path, dtype=dtype)
    vectors = expected(lines)
    calibration = QUANTISED[dtype].fit(vectors[:3])
    found = np.load(path)
    np.testing.assert_array_equal(found, calibration.quantise(vectors))
    assert (found.dtype, done.rows) == (calibration.dtype, 8)
    kept = read_calibration(path)
    np.testing.assert_array_equal(kept.dequantise(found), calibration.dequantise(found))


def test_a_calibration_without_rows_is_made_again(tmp_path, chunks_of_3):
    path = tmp_path / "out.npy"
    write_calibration(path, Int8.fit(np.ones((1, DIM), np.float32)))
    embed_lines(SENTENCES[:3], CharacterEncoder(), path, dtype="int8")
    scales = Int8.fit(expected(SENTENCES[:3])).scales
    np.testing.assert_array_equal(read_calibration(path).scales, scales)


@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_stopped_job_goes_on(tmp_path, chunks_of_3, last):
    lines, path = SENTENCES[:8], tmp_path / "out.npy"
    with pytest.raises(Stopped):
        embed_lines(lines, StoppingEncoder(last), path)
    assert not path.exists()
    encoder = CharacterEncoder()
    done = embed_lines(iter(lines), encoder, path)
    np.testing.assert_array_equal(np.load(path), expected(lines))
    assert sum(encoder.calls) == 8 - 3 * last
    # Those of the first run count, too.
    assert done.lines_cut == sum(len(line) > 20 for line in lines)
    assert embed_lines(lines, StoppingEncoder(0), path) == done


def test_a_row_half_written_is_written_again(tmp_path, chunks_of_3):
    lines, path = SENTENCES[:8], tmp_path / "out.npy"
    with pytest.raises(Stopped):
        embed_lines(lines, StoppingEncoder(1), path)
    with open(tmp_path / "out.npy.unfinished", "ab") as file:
        file.write(b"\xff" * 37)
    embed_lines(lines, CharacterEncoder(), path)
    np.testing.assert_array_equal(np.load(path), expected(lines))


@pytest.mark.parametrize("dtype", ["float32", *QUANTISED])
@pytest.mark.parametrize("size", [None, 0, 5, 130, -1, "no record"])
def test_a_record_without_its_rows_is_not_believed(tmp_path, chunks_of_3, dtype, size):
    """A job was killed between two of its files; `size` is that of the rows that are left."""
    lines, path = SENTENCES[:8], tmp_path / "out.npy"
    with pytest.raises(Stopped):
        embed_lines(lines, StoppingEncoder(2), path, dtype=dtype)
    unfinished = tmp_path / "out.npy.unfinished"
    if size is None:
        unfinished.rename(tmp_path / "moved away")
    elif size == "no record":
        (tmp_path / "out.npy.json").unlink()
    else:
        os.truncate(unfinished, size % unfinished.stat().st_size)
    embed_lines(lines, CharacterEncoder(), path, dtype=dtype)
    calibration = QUANTISED[dtype].fit(expected(lines)[:3]) if dtype in QUANTISED else None
    vectors = calibration.quantise(expected(lines)) if calibration else expected(lines)
    np.testing.assert_array_equal(np.load(path), vectors)


def test_other_lines_are_refused(tmp_path, chunks_of_3):
    with pytest.raises(Stopped):
        embed_lines(SENTENCES[:8], StoppingEncoder(2), tmp_path / "out.npy")
    from labse_tf.errors import InputError

    for others in (["another", *SENTENCES[1:8]], SENTENCES[:5]):
        with pytest.raises(InputError, match="vectors of 6 other lines"):
            embed_lines(others, CharacterEncoder(), tmp_path / "out.npy")


# The command, with an encoder of the current folder's.

ENCODER = """
    import os, signal
    import numpy as np

    class Encoder:
        sequence_length = 20

        def __init__(self):
            self.calls = self.texts_cut = 0

        def encode(self, texts):
            self.calls += 1
            if self.calls == int(os.environ.get("KILL_AT", 0)):
                os.kill(os.getpid(), signal.SIGKILL)
            self.texts_cut += sum(len(text) > 20 for text in texts)
            lengths = np.array([[len(text)] for text in texts], np.float32)
            vectors = np.concatenate([lengths, np.ones_like(lengths)], axis=1)
            return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "lengths.py").write_text(textwrap.dedent(ENCODER))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("lengths", None)


def ratios(path) -> list[int]:
    """Of the vectors in a file, the lengths that they were made of."""
    rows = np.load(path).astype(np.float64)
    return np.rint(rows[:, 0] / rows[:, 1]).astype(int).tolist()


def test_killed_and_run_again(folder, caplog):
    lines = [("字" * (number % 30)) for number in range(20_000)]
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    command = ["embed", "lengths:Encoder", "in.txt", "--out", "out.npy"]
    killed = forked.run(*forked.LABSE, *command, cwd=folder, env={**os.environ, "KILL_AT": "2"})
    assert killed.returncode == -signal.SIGKILL
    assert not (folder / "out.npy").exists()
    assert main(command) == 0
    assert ratios("out.npy") == [len(line) for line in lines]
    cut = sum(len(line) > 20 for line in lines)
    assert f"{cut} lines were truncated to 20 tokens" in caplog.text
    assert sorted(path.name for path in folder.glob("out*")) == ["out.npy"]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_killed_after_the_vectors_are_in_place(folder, monkeypatch, capsys, dtype):
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in SENTENCES), "utf-8")
    command = ["embed", "lengths:Encoder", "in.txt", "--out", "out.npy", "--dtype", dtype]

    def rmtree(path, real=shutil.rmtree, **options):
        if str(path).endswith(".work"):
            raise KeyboardInterrupt
        real(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", rmtree)
        assert main(command) == 130
    before = (folder / "out.npy").read_bytes()
    assert (folder / "out.npy.work").is_dir()
    assert main(command) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    assert (folder / "out.npy").read_bytes() == before
    assert not (folder / "out.npy.work").exists()


@pytest.mark.parametrize("out", ["out.npy", "out.parquet"])
def test_a_job_that_another_has_finished_embeds_nothing(folder, capsys, monkeypatch, out):
    """The other one ends while this one reads its model."""
    (folder / "in.txt").write_text("eins\nzwei\n")
    late = "\nfrom pathlib import Path\nPath('{}').write_text('of another')\n"
    (folder / "late.py").write_text((folder / "lengths.py").read_text() + late.format(out))
    monkeypatch.setenv("KILL_AT", "1")
    assert main(["embed", "late:Encoder", "in.txt", "--out", out]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (folder / out).read_text() == "of another"
    assert not list(folder.glob("out*.*.*"))
    sys.modules.pop("late")


def test_two_jobs_at_once(folder, capsys):
    (folder / "in.txt").write_text("eins\nzwei\n")
    command = ["embed", "lengths:Encoder", "in.txt", "--out", "out.npy"]
    with locked(folder / "out.npy.work"):
        assert main(command) == 2
    assert "another process" in capsys.readouterr().err
    assert main(command) == 0
    assert not (folder / "out.npy.work").exists()


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_parquet(folder, dtype):
    from pyarrow import parquet

    (folder / "in.txt").write_text("".join(f"{line}\n" for line in SENTENCES), "utf-8")
    command = ["embed", "lengths:Encoder", "in.txt", "--dtype", dtype]
    assert main([*command, "--out", "out.parquet"]) == main([*command, "--out", "out.npy"]) == 0
    table = parquet.read_table("out.parquet")
    assert table.column("line").to_pylist() == list(range(1, len(SENTENCES) + 1))
    rows = np.array(table.column("vector").to_pylist(), dtype)
    np.testing.assert_array_equal(rows, np.load("out.npy"))


def test_lines_that_are_no_sentences(folder):
    """Empty, of NUL bytes, of a megabyte: each has its row."""
    lines = ["", "a\0b", "x" * 1_000_000, "\u2028", "Ende"]
    (folder / "in.txt").write_text("\n".join(lines), "utf-8")
    assert main(["embed", "lengths:Encoder", "in.txt", "--out", "out.npy"]) == 0
    found = np.load("out.npy")
    assert len(found) == 5 and np.isfinite(found).all()
    assert ratios("out.npy")[:2] == [0, 3]


def test_a_full_disk(folder, monkeypatch, capsys):
    (folder / "in.txt").write_text("eins\nzwei\n")
    command = ["embed", "lengths:Encoder", "in.txt", "--out", "out.npy"]
    with monkeypatch.context() as patch:

        def full(file, *_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(os, "fsync", full)
        assert main(command) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "out.npy: cannot be written (No space left on device); make room" in error
    assert main(command) == 0
    assert ratios("out.npy") == [4, 4]


def test_the_work_of_another_job_is_kept(folder, monkeypatch, capsys):
    lines = "".join(f"{number}\n" for number in range(9000))
    (folder / "in.txt").write_text(lines)
    monkeypatch.setenv("KILL_AT", "0")
    command = ["embed", "lengths:Encoder", "in.txt", "--out", "out.npy"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _failing_after(os.replace, 2))
        with pytest.raises(KeyboardInterrupt):
            from labse_tf.embedding.file import embed_file
            from labse_tf.embedding.open import open_encoder

            embed_file("lengths:Encoder", "in.txt", "out.npy", open_encoder=open_encoder)
    before = (folder / "out.npy.work" / "vectors.npy.unfinished").read_bytes()
    (folder / "in.txt").write_text("0\n")
    assert main(command) == 2
    assert "work of an interrupted job with other settings (input)" in capsys.readouterr().err
    assert (folder / "out.npy.work" / "vectors.npy.unfinished").read_bytes() == before
    assert main([*command, "--overwrite"]) == 0
    assert len(np.load("out.npy")) == 1


def test_leading_columns(folder, monkeypatch, capsys):
    """Vectors of all columns are not what another dimension goes on with."""
    (folder / "in.txt").write_text("eins\nzwei\n")
    command = ["embed", "dictionary_encoder:Dictionary", "in.txt", "--out", "out.npy"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _failing_after(os.replace, 2))
        assert main(command) == 130
    for dim in ("17", "8"):
        assert main([*command, "--dim", dim]) == 2
    errors = capsys.readouterr().err
    assert "has vectors of 16 dimensions, and --dim is 17" in errors
    assert "work of an interrupted job with other settings (dim)" in errors
    assert main([*command, "--dim", "8", "--overwrite"]) == 0
    found = np.load("out.npy")
    assert found.shape == (2, 8)
    # Its first 8 columns have a single number, of the animal.
    np.testing.assert_allclose(found.max(axis=1), 1)


def _failing_after(function, times: int):
    """Returns `function` that is interrupted at its call number `times` + 1."""
    calls = iter(range(times))

    def call(*arguments):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return function(*arguments)

    return call


@pytest.mark.parametrize("out", ["out", "out.txt", "out.npz"])
def test_another_suffix(folder, capsys, out):
    (folder / "in.txt").write_text("eins\n")
    assert main(["embed", "lengths:Encoder", "in.txt", "--out", out]) == 2
    assert "use .npy or .parquet" in capsys.readouterr().err


def test_lines_that_an_encoder_makes_nothing_of_are_counted(folder, caplog):
    (folder / "in.txt").write_text("eins\nnothing\nzwei\n")
    assert main(["embed", "dictionary_encoder:Dictionary", "in.txt", "--out", "out.npy"]) == 0
    assert np.load("out.npy").any(axis=1).tolist() == [True, False, True]
    assert "1 lines have a zero vector" in caplog.text
