"""Runs on a bad disk: damaged checkpoints are named and passed over, a full disk is said."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import forked
import pytest
import tensorflow as tf
from runs import SHALLOW, arguments, lines

from labse_tf.cli.main import main
from labse_tf.training.runs.checkpoints import choose_checkpoint, find_damage
from labse_tf.training.runs.run_dir import open_existing

pytestmark = pytest.mark.slow

DATA = ".data-00000-of-00001"
STEPS = 6


@pytest.fixture(scope="module")
def command(config_file):
    """`labse train` of a small encoder, a checkpoint every second step."""

    def build(run_dir):
        loop = ("train.loop.log_interval=1", "train.loop.checkpoint_interval=2")
        sets = ("languages=[th]", "train.bucket_lengths=[24]", f"train.steps={STEPS}", *loop)
        return arguments("train", config_file, run_dir, *SHALLOW, *sets)

    return build


@pytest.fixture(scope="module")
def trained(tmp_path_factory, command):
    """A finished run, which has the checkpoints of the steps 5 and 6."""
    run_dir = tmp_path_factory.mktemp("finished") / "run"
    assert main(command(run_dir)) == 0
    return run_dir


@pytest.fixture
def copied(tmp_path, trained):
    shutil.copytree(trained, tmp_path / "run")
    return tmp_path / "run", tmp_path / "run" / "checkpoints"


def losses(run_dir):
    return [line["loss"] for line in lines(run_dir)]


def cut_off(file):
    file.write_bytes(file.read_bytes()[:-100])


def test_the_checkpoint_before_a_damaged_one_is_used(copied, command, caplog):
    run_dir, checkpoints = copied
    expected = losses(run_dir)
    cut_off(checkpoints / f"ckpt-{STEPS}{DATA}")
    with caplog.at_level("INFO", "labse"):
        assert main(command(run_dir)) == 0
    assert f"ckpt-{STEPS} is damaged (" in caplog.text
    assert f"5 of {STEPS} steps already done" in caplog.text
    assert losses(run_dir) == pytest.approx(expected, abs=1e-4)
    assert find_damage(str(checkpoints / f"ckpt-{STEPS}")) is None
    assert Path(tf.train.latest_checkpoint(checkpoints)).name == f"ckpt-{STEPS}"


def test_export_and_init_pass_over_it_too(copied, caplog):
    run_dir, checkpoints = copied
    (checkpoints / f"ckpt-{STEPS}.index").write_bytes(b"")
    assert choose_checkpoint(open_existing(run_dir)).step == 5
    assert f"ckpt-{STEPS} is damaged (" in caplog.text


def test_no_checkpoint_is_whole(copied, command, capsys):
    run_dir, checkpoints = copied
    for data in checkpoints.glob(f"ckpt-*{DATA}"):
        cut_off(data)
    before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
    for words in (
        command(run_dir),
        ["export", str(run_dir), "--out", str(run_dir.parent / "model")],
    ):
        assert main(words) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert f"{checkpoints}: all checkpoints are damaged (ckpt-6, ckpt-5); " in error
    assert {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()} == before


def test_a_full_disk_leaves_the_last_checkpoint(copied, command):
    """A limit on the size of a file stands for the disk: files of the metrics are below it."""
    run_dir, checkpoints = copied
    for file in checkpoints.glob(f"ckpt-{STEPS}*"):
        file.unlink()
    # Python leaves the signal of the limit out, so that TensorFlow is told by its writing.
    limit = (checkpoints / f"ckpt-5{DATA}").stat().st_size // 2
    full = forked.run(
        *forked.LABSE,
        *command(run_dir),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        file_size=limit,
    )
    assert full.returncode == 2, full.stderr
    assert full.stderr.splitlines()[-1] == (
        f"labse: error: {checkpoints}: cannot be written to (File too large); "
        "make room; the same command resumes from the last finished checkpoint"
    )
    assert "Traceback" not in full.stderr
    left = {path.name for path in checkpoints.iterdir()}
    assert left == {"checkpoint", "ckpt-5.index", f"ckpt-5{DATA}"}
    assert find_damage(str(checkpoints / "ckpt-5")) is None
    assert main(command(run_dir)) == 0
    assert Path(tf.train.latest_checkpoint(checkpoints)).name == f"ckpt-{STEPS}"
    assert len(losses(run_dir)) == STEPS
