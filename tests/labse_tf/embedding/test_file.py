"""Embedding of files: rows in order, resuming after a kill, calibrations, faults."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import zlib

import numpy as np
import pytest
from tiny_text import SENTENCES

from labse_tf.cli.main import main
from labse_tf.embedding.file import embed_file, embed_lines
from labse_tf.embedding.open import open_encoder
from labse_tf.embedding.quantisation import (
    QUANTISED,
    Int8,
    read_calibration,
    write_calibration,
)
from labse_tf.errors import InputError
from labse_tf.files.outputs import locked
from labse_tf.retrieval.vectors import open_vectors

DIM = 8
LINES = SENTENCES[:8]
EACH_TYPE = pytest.mark.parametrize("dtype", ["float32", "float16", *QUANTISED])


class Stopped(Exception):
    pass


class CharacterEncoder:
    """The unit vector of a text's characters, each in one of DIM places; stops at call `last`."""

    sequence_length = 20

    def __init__(self, last: int | None = None) -> None:
        self.texts_cut = 0
        self.calls: list[int] = []
        self._last = last

    def encode(self, texts):
        if len(self.calls) == self._last:
            raise Stopped
        self.calls.append(len(texts))
        self.texts_cut += sum(len(text) > self.sequence_length for text in texts)
        return expected(texts)


def expected(texts, dtype="float32") -> np.ndarray:
    vectors = np.zeros((len(texts), DIM), np.float32)
    for row, text in enumerate(texts):
        vectors[row, 0] = 1
        for character in text[: CharacterEncoder.sequence_length]:
            vectors[row, zlib.crc32(character.encode()) % DIM] += 1
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    if dtype in QUANTISED:  # Calibrated on the first chunk.
        return QUANTISED[dtype].fit(vectors[:3]).quantise(vectors)
    return vectors.astype(dtype)


@pytest.fixture
def chunks_of_3(monkeypatch):
    monkeypatch.setattr("labse_tf.embedding.file._LINES_PER_CHUNK", 3)


@EACH_TYPE
@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_stopped_job_resumes(tmp_path, chunks_of_3, dtype, last):
    path, encoder = tmp_path / "out.npy", CharacterEncoder()
    with pytest.raises(Stopped):
        embed_lines(LINES, CharacterEncoder(last), path, dtype=dtype)
    assert not path.exists()
    done = embed_lines(iter(LINES), encoder, path, dtype=dtype)
    found = np.load(path)
    np.testing.assert_array_equal(found, expected(LINES, dtype))
    assert found.dtype == expected(LINES, dtype).dtype and done.rows == 8
    assert sum(encoder.calls) == 8 - 3 * last
    # Lines cut in the first run count, too.
    assert done.lines_cut == sum(len(line) > 20 for line in LINES) > 0
    assert embed_lines(LINES, CharacterEncoder(0), path, dtype=dtype) == done


@EACH_TYPE
@pytest.mark.parametrize("size", [None, 0, 5, 130, -1, "half a row", "no record"])
def test_a_record_is_believed_only_with_its_rows(tmp_path, chunks_of_3, dtype, size):
    """A job was killed between two of its files; `size` is what is left of the rows."""
    path, unfinished = tmp_path / "out.npy", tmp_path / "out.npy.unfinished"
    with pytest.raises(Stopped):
        embed_lines(LINES, CharacterEncoder(2), path, dtype=dtype)
    if size is None:
        unfinished.rename(tmp_path / "moved away")
    elif size == "no record":
        (tmp_path / "out.npy.json").unlink()
    elif size == "half a row":
        unfinished.write_bytes(unfinished.read_bytes() + b"\xff" * 37)
    else:
        os.truncate(unfinished, size % unfinished.stat().st_size)
    embed_lines(LINES, CharacterEncoder(), path, dtype=dtype)
    np.testing.assert_array_equal(np.load(path), expected(LINES, dtype))


def test_other_lines_are_refused(tmp_path, chunks_of_3):
    with pytest.raises(Stopped):
        embed_lines(LINES, CharacterEncoder(2), tmp_path / "out.npy")
    for others in (["another", *SENTENCES[1:8]], SENTENCES[:5]):
        with pytest.raises(InputError, match="vectors of 6 other lines"):
            embed_lines(others, CharacterEncoder(), tmp_path / "out.npy")
    # Without their rows, an old calibration is made again.
    path = tmp_path / "other.npy"
    write_calibration(path, Int8.fit(np.ones((1, DIM), np.float32)))
    embed_lines(SENTENCES[:3], CharacterEncoder(), path, dtype="int8")
    scales = Int8.fit(expected(SENTENCES[:3])).scales
    np.testing.assert_array_equal(read_calibration(path).scales, scales)


# The command, with an encoder in the current folder.

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
COMMAND = ["embed", "lengths:Encoder", "in.txt", "--out", "out.npy"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "lengths.py").write_text(textwrap.dedent(ENCODER))
    (tmp_path / "in.txt").write_text("eins\nzwei\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("lengths", None)


def ratios(rows) -> list[int]:
    """Returns the lengths of text that vectors were made of."""
    return np.rint(rows[:, 0] / rows[:, 1]).astype(int).tolist()


def interrupted_replace(times: int, only=lambda target: True):
    """Returns `os.replace`, interrupted after so many calls for targets that `only` accepts."""
    calls, real = iter(range(times)), os.replace

    def replace(source, target):
        if only(os.fspath(target)) and next(calls, None) is None:
            raise KeyboardInterrupt
        real(source, target)

    return replace


def test_killed_and_run_again(folder, caplog):
    lines = [("字" * (number % 30)) for number in range(20_000)]
    (folder / "in.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    command = [*COMMAND, "--dtype", "int8"]
    code = "import sys; from labse_tf.cli.main import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "KILL_AT": "3"}
    killed = subprocess.run([sys.executable, "-c", code, *command], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in folder.glob("out*")] == ["out.npy.work"]
    assert main(command) == 0
    assert {path.name for path in folder.glob("out*")} == {"out.npy", "out.npy.calibration.json"}
    lengths = np.array([len(line) for line in lines])
    vectors = np.stack([lengths, np.ones_like(lengths)], axis=1).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    calibration = Int8.fit(vectors[:8192])
    rows = calibration.quantise(vectors)
    np.testing.assert_array_equal(np.load("out.npy"), rows)
    np.testing.assert_array_equal(open_vectors("out.npy")[:], calibration.dequantise(rows))
    assert f"{(lengths > 20).sum()} lines were truncated to 20 tokens" in caplog.text


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_killed_after_the_vectors_are_in_place(folder, monkeypatch, capsys, dtype):
    command = [*COMMAND, "--dtype", dtype]

    def rmtree(path, real=shutil.rmtree, **options):
        if str(path).endswith(".work"):
            raise KeyboardInterrupt
        real(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", rmtree)
        assert main(command) == 130
    before = (folder / "out.npy").read_bytes()
    assert main(command) == 2
    assert "exists already" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    assert (folder / "out.npy").read_bytes() == before
    assert not (folder / "out.npy.work").exists()


@pytest.mark.parametrize(("dtype", "stop"), [("float32", 0), ("binary", 0), ("binary", 1)])
def test_no_file_is_read_with_the_calibration_of_another(folder, monkeypatch, dtype, stop):
    """Stopped before either of the moves: of the calibration, and of the vectors."""
    assert main([*COMMAND, "--dtype", "int8"]) == 0
    before, command = np.load("out.npy"), [*COMMAND, "--dtype", dtype, "--overwrite"]

    def is_result(target):
        return target.startswith("out.npy") and ".work" not in target

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted_replace(stop, is_result))
        assert main(command) == 130
    # The old vectors, or none.
    if os.path.exists("out.npy"):
        assert read_calibration(folder / "out.npy").kind == "int8"
        np.testing.assert_array_equal(np.load("out.npy"), before)
    assert main(command) == 0
    assert len(open_vectors("out.npy")) == 2
    assert os.path.exists("out.npy.calibration.json") == (dtype == "binary")


def test_two_jobs(folder, capsys, monkeypatch):
    """The other one works, or ends while this one reads its model: nothing is embedded."""
    with locked(folder / "out.npy.work"):
        assert main(COMMAND) == 2
    assert "another process" in capsys.readouterr().err
    late = "\nfrom pathlib import Path\nPath('out.npy').write_text('of another')\n"
    (folder / "late.py").write_text((folder / "lengths.py").read_text() + late)
    monkeypatch.setenv("KILL_AT", "1")
    assert main(["embed", "late:Encoder", *COMMAND[2:]]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (folder / "out.npy").read_text() == "of another"
    assert not list(folder.glob("out*.*.*"))
    sys.modules.pop("late")


def test_odd_lines(folder):
    """Empty, with NUL bytes, of a megabyte: each has its row."""
    lines = ["", "a\0b", "x" * 1_000_000, "\u2028", "Ende"]
    (folder / "in.txt").write_text("\n".join(lines), "utf-8")
    assert main([*COMMAND, "--dtype", "float16"]) == 0
    found = np.load("out.npy")
    assert (found.dtype, len(found)) == (np.float16, 5) and np.isfinite(found).all()
    assert ratios(found)[:2] == [0, 3]


def test_a_full_disk(folder, monkeypatch, capsys):
    def full(file, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert main(COMMAND) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "out.npy: cannot be written (No space left on device); make room" in error
    assert main(COMMAND) == 0
    assert ratios(np.load("out.npy")) == [4, 4]


def test_the_work_of_another_job_is_kept(folder, monkeypatch, capsys, caplog):
    """Another job has another input, or other leading columns, which must exist."""
    command = ["embed", "dictionary_encoder:Dictionary", "in.txt", "--out", "out.npy"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted_replace(2))
        assert main(command) == 130
    unfinished = folder / "out.npy.work" / "vectors.npy.unfinished"
    before = unfinished.read_bytes()
    for dim in ("17", "8"):
        assert main([*command, "--dim", dim]) == 2
    (folder / "in.txt").write_text("eins\nnothing\n")
    assert main(command) == 2
    errors = capsys.readouterr().err
    assert "has vectors of 16 dimensions, and --dim is 17" in errors
    assert "work of an interrupted job with other settings (dim)" in errors
    assert "work of an interrupted job with other settings (input)" in errors
    assert unfinished.read_bytes() == before
    assert main([*command, "--dim", "8", "--overwrite"]) == 0
    # The first 8 columns have a single number, for the animal.
    np.testing.assert_allclose(np.load("out.npy").max(axis=1), [1, 0])
    assert "1 lines have a zero vector" in caplog.text


def test_outputs_are_refused_before_any_work(folder):
    for out in ("out", "out.txt", "out.npz"):
        with pytest.raises(InputError, match="name a .npy file"):
            embed_file("no_such:Model", "in.txt", out, open_encoder=open_encoder)
