"""Runs on a bad disk: damaged checkpoints are named and passed over, a full disk is said."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import forked
import pytest
import tensorflow as tf

from labse_tf.cli.main import main
from labse_tf.training.runs.checkpoints import choose_checkpoint, find_damage
from labse_tf.training.runs.run_dir import open_existing

pytestmark = pytest.mark.slow

DATA = ".data-00000-of-00001"
STEPS = 6


@pytest.fixture(scope="module")
def command(config_file):
    """`labse train` or `labse pretrain` of a small encoder, a checkpoint every second step."""

    def build(kind, run_dir):
        settings = {
            "languages": "[th]",
            "encoder.num_layers": 1,
            "train.bucket_lengths": "[24]",
            "train.steps": STEPS,
            "pretrain.stage_steps": f"[{STEPS}]",
            f"{kind}.loop.log_interval": 1,
            f"{kind}.loop.checkpoint_interval": 2,
        }
        sets = [f"--set={key}={value}" for key, value in settings.items()]
        return [kind, str(config_file), "--run-dir", str(run_dir), *sets]

    return build


@pytest.fixture(scope="module")
def trained(tmp_path_factory, command):
    """Finished runs; each has the checkpoints of the steps 5 and 6."""
    folder = tmp_path_factory.mktemp("finished")
    for kind in ("train", "pretrain"):
        assert main(command(kind, folder / kind)) == 0
    return folder


@pytest.fixture
def copied(tmp_path, trained):
    def copy(kind):
        shutil.copytree(trained / kind, tmp_path / kind)
        checkpoints = tmp_path / kind / "checkpoints"
        return tmp_path / kind, checkpoints / "stage_1" if kind == "pretrain" else checkpoints

    return copy


def losses(run_dir):
    return [line["loss"] for line in open_existing(run_dir).read_metrics()]


def cut_off(file):
    file.write_bytes(file.read_bytes()[:-100])


@pytest.mark.parametrize("kind", ["train", "pretrain"])
def test_the_checkpoint_before_a_damaged_one_is_used(copied, command, caplog, kind):
    run_dir, checkpoints = copied(kind)
    expected = losses(run_dir)
    cut_off(checkpoints / f"ckpt-{STEPS}{DATA}")
    with caplog.at_level("INFO", "labse"):
        assert main(command(kind, run_dir)) == 0
    assert f"ckpt-{STEPS} is damaged (" in caplog.text
    assert f"5 of {STEPS} steps already done" in caplog.text
    assert losses(run_dir) == pytest.approx(expected, abs=1e-4)
    assert find_damage(str(checkpoints / f"ckpt-{STEPS}")) is None
    assert Path(tf.train.latest_checkpoint(checkpoints)).name == f"ckpt-{STEPS}"


def test_export_and_init_pass_over_it_too(copied, caplog):
    run_dir, checkpoints = copied("train")
    (checkpoints / f"ckpt-{STEPS}.index").write_bytes(b"")
    assert choose_checkpoint(open_existing(run_dir)).step == 5
    assert f"ckpt-{STEPS} is damaged (" in caplog.text


def test_no_checkpoint_is_whole(copied, command, capsys):
    run_dir, checkpoints = copied("train")
    for data in checkpoints.glob(f"ckpt-*{DATA}"):
        cut_off(data)
    before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()}
    for arguments in (
        command("train", run_dir),
        ["export", str(run_dir), "--out", str(run_dir.parent / "model")],
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert f"{checkpoints}: all checkpoints are damaged (ckpt-6, ckpt-5); " in error
    assert {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file()} == before


def test_a_full_disk_leaves_the_last_checkpoint(copied, command):
    """A limit on the size of a file stands for the disk: files of the metrics are below it."""
    run_dir, checkpoints = copied("train")
    for file in checkpoints.glob(f"ckpt-{STEPS}*"):
        file.unlink()
    # Python leaves the signal of the limit out, so that TensorFlow is told by its writing.
    limit = (checkpoints / f"ckpt-5{DATA}").stat().st_size // 2
    full = forked.run(
        *forked.LABSE,
        *command("train", run_dir),
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
    assert main(command("train", run_dir)) == 0
    assert Path(tf.train.latest_checkpoint(checkpoints)).name == f"ckpt-{STEPS}"
    assert len(losses(run_dir)) == STEPS
