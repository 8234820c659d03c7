"""`labse embed --dtype int8|binary`: files with their calibration, kills, other jobs' files."""

from __future__ import annotations

import os
import signal
import sys
import textwrap

import forked
import numpy as np
import pytest

from labse_tf.cli.main import main
from labse_tf.embedding.file import embed_file
from labse_tf.embedding.open import open_encoder
from labse_tf.embedding.quantisation import QUANTISED, read_calibration
from labse_tf.errors import InputError
from labse_tf.retrieval.vectors import open_vectors

ENCODER = """
    import os, signal
    import numpy as np

    class Encoder:
        calls, dim = 0, 5

        def encode(self, texts):
            self.calls += 1
            if self.calls == int(os.environ.get("KILL_AT", 0)):
                os.kill(os.getpid(), signal.SIGKILL)
            angles = np.array([[float(text)] for text in texts]) * [1, 1.1, 1.3, 1.7, 2]
            vectors = np.sin(angles).astype(np.float32)
            return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
"""
COUNT = 20_000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "angles.py").write_text(textwrap.dedent(ENCODER))
    (tmp_path / "in.txt").write_text("".join(f"{number + 1}\n" for number in range(COUNT)))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("angles", None)


def command(dtype, *options):
    return ["embed", "angles:Encoder", "in.txt", "--out", "out.npy", "--dtype", dtype, *options]


@pytest.mark.parametrize("dtype", list(QUANTISED))
def test_killed_and_run_again(folder, dtype):
    killed = forked.run(
        *forked.LABSE, *command(dtype), cwd=folder, env={**os.environ, "KILL_AT": "3"}
    )
    assert killed.returncode == -signal.SIGKILL
    assert not list(folder.glob("out.npy*json")) and not (folder / "out.npy").exists()
    assert main(command(dtype)) == 0
    assert sorted(path.name for path in folder.glob("out*")) == [
        "out.npy",
        "out.npy.calibration.json",
    ]
    embed_file("angles:Encoder", "in.txt", "whole.npy", open_encoder=open_encoder)
    vectors = np.load("whole.npy")
    calibration = QUANTISED[dtype].fit(vectors[:8192])
    expected = calibration.quantise(vectors)
    np.testing.assert_array_equal(np.load("out.npy"), expected)
    np.testing.assert_array_equal(open_vectors("out.npy")[:], calibration.dequantise(expected))


@pytest.mark.parametrize("dtype", ["float32", "binary"])
@pytest.mark.parametrize("stop", [0, 1])
def test_no_file_is_read_with_the_calibration_of_another(folder, monkeypatch, dtype, stop):
    """Stopped before either of the moves: of the calibration, and of the vectors."""
    assert main(command("int8")) == 0
    before = np.load("out.npy")
    moves = []

    def replace(source, target, real=os.replace):
        if os.fspath(target).startswith("out.npy") and ".work" not in os.fspath(target):
            moves.append(target)
            if len(moves) > stop:
                raise KeyboardInterrupt
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        if dtype == "binary" or stop == 0:
            assert main(command(dtype, "--overwrite")) == 130
            # The old vectors, or none.
            if os.path.exists("out.npy"):
                assert read_calibration(folder / "out.npy").kind == "int8"
                np.testing.assert_array_equal(np.load("out.npy"), before)
    assert main(command(dtype, "--overwrite")) == 0
    assert len(open_vectors("out.npy")) == COUNT
    assert os.path.exists("out.npy.calibration.json") == (dtype == "binary")


@pytest.mark.parametrize("dtype", list(QUANTISED))
def test_parquet_is_refused_before_any_work(folder, capsys, dtype):
    arguments = ["embed", "no_such:Model", "in.txt", "--out", "out.parquet", "--dtype", dtype]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert f"out.parquet: cannot hold {dtype} vectors; name a .npy file, or use float16" in error


def test_another_type_is_refused(folder):
    with pytest.raises(InputError, match="--dtype is int4; give one of float32, float16, int8, b"):
        embed_file("angles:Encoder", "in.txt", "out.npy", open_encoder=open_encoder, dtype="int4")
