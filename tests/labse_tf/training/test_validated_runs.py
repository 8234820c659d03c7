"""Runs of `labse train` with dev pairs: what they leave, stop at, and go on with."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

import forked
import numpy as np
import pytest
import tensorflow as tf

from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.training.runs.checkpoints import (
    choose_checkpoint,
    latest_checkpoint,
    load_encoder,
    read_best,
)
from labse_tf.training.runs.run_dir import open_existing

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def arguments(config_file, bitext_dir):
    """`labse train` of a small encoder on two languages, up to --run-dir."""

    def build(run_dir, **changes):
        settings = {
            "languages": "[de,th]",
            "encoder.num_layers": 1,
            "pretrain.stage_steps": "[1]",
            "train.bucket_lengths": "[24]",
            "train.dev": f"[{bitext_dir}]",
            "train.dev_size": 30,
            **{f"train.{key}": value for key, value in changes.items()},
        }
        sets = [f"--set={key}={value}" for key, value in settings.items()]
        return ["train", str(config_file), "--run-dir", str(run_dir), *sets]

    return build


def measured(run_dir):
    """Step -> accuracies, from metrics.jsonl."""
    lines = open_existing(run_dir).read_metrics()
    return {line["step"]: line["held_out"]["retrieval"] for line in lines if "held_out" in line}


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def weights(path, part="encoder/"):
    names = [name for name, _ in tf.train.list_variables(path) if name.startswith(part)]
    return {name: tf.train.load_variable(path, name) for name in names}


@pytest.fixture(scope="module")
def run(tmp_path_factory, arguments):
    """14 steps on German alone, so that no batch has rows of the Thai characters."""
    run_dir = tmp_path_factory.mktemp("validated") / "run"
    loop = {"loop.log_interval": 3, "loop.checkpoint_interval": 3, "loop.checkpoints_kept": 9}
    settings = arguments(run_dir, steps=14, dev_interval=6, **loop)
    assert main([part.replace("[de,th]", "[de]") for part in settings]) == 0
    return run_dir


def test_it_measures_at_intervals_and_at_the_end(run):
    assert list(measured(run)) == [6, 12, 14]
    for found in measured(run).values():
        assert found["pairs"] == 30 and set(found["by_language"]) == {"de"}
        assert found["accuracy"] == pytest.approx(
            (found["to_english"] + found["from_english"]) / 2, abs=1e-6
        )
    lines = open_existing(run).read_metrics()
    assert [line["step"] for line in lines if "loss" in line] == [3, 6, 9, 12, 14]
    assert list((run / "tensorboard" / "held_out").rglob("events*"))


def test_the_best_one_is_kept(run):
    best = read_best(run / "checkpoints")
    accuracies = {step: found["accuracy"] for step, found in measured(run).items()}
    assert best.accuracy == max(accuracies.values()) == accuracies[best.step]


def test_what_is_measured_has_caught_up(run):
    """The best checkpoint, written while measuring, is up to date in rows that no batch held."""
    best = read_best(run / "checkpoints")
    optimizer = {
        name: value
        for name, value in weights(latest_checkpoint(open_existing(run)), "optimizer/").items()
        if value.dtype == np.int32 and value.ndim == 1
    }
    (last_steps,) = optimizer.values()
    assert (last_steps == 14).all()  # Of the table's rows in the rolling one.
    kept = weights(best.path)
    rolling = [str(path.with_suffix("")) for path in (run / "checkpoints").glob("ckpt-*.index")]
    same = [path for path in rolling if path.endswith(f"ckpt-{best.step}")]
    for name, value in weights(same[0]).items():
        np.testing.assert_array_equal(kept[name], value)
    assert len(kept) > 15


def test_0_steps_measure_what_the_run_starts_from(tmp_path, arguments):
    assert main(arguments(tmp_path / "run", steps=0)) == 0
    assert list(measured(tmp_path / "run")) == [0]
    assert read_best(tmp_path / "run/checkpoints").step == 0
    assert latest_checkpoint(open_existing(tmp_path / "run")).endswith("ckpt-0")


# Early stopping. Without a learning rate no accuracy is better than the first.


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, arguments):
    run_dir = tmp_path_factory.mktemp("stopped") / "run"
    still = {"optimizer.learning_rate": 0, "steps": 50, "dev_interval": 2, "patience": 3}
    command = arguments(run_dir, **still)
    assert main(command) == 0
    return run_dir, command


def test_a_run_stops_without_a_better_accuracy(stopped):
    run_dir, _ = stopped
    assert list(measured(run_dir)) == [2, 4, 6, 8]
    assert read_best(run_dir / "checkpoints").step == 2
    assert latest_checkpoint(open_existing(run_dir)).endswith("ckpt-8")


def test_the_same_command_says_that_it_is_finished(stopped, caplog):
    run_dir, command = stopped
    before = contents(run_dir)
    with caplog.at_level("INFO", "labse"):
        assert main(command) == 0
    assert "stopped at step 8 of 50: 3 measurements without improvement" in caplog.text
    assert contents(run_dir) == before


def test_which_checkpoint_is_read(stopped, caplog):
    run_dir = open_existing(stopped[0])
    with caplog.at_level("INFO", "labse"):
        chosen = choose_checkpoint(run_dir)
    assert "the checkpoint of step 2, the best on the dev pairs (accuracy 0." in caplog.text
    assert chosen == choose_checkpoint(run_dir, "best")
    assert chosen.step == 2 and chosen.accuracy == measured(run_dir.path)[2]["accuracy"]
    newest = choose_checkpoint(run_dir, "latest")
    assert newest.step == 8 and newest.accuracy is None
    best, last = (load_encoder(run_dir, checkpoint=one.path) for one in (chosen, newest))
    for one, other in zip(best.get_weights(), last.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)  # The learning rate was 0.


def test_export_and_init_take_the_one_that_is_asked_for(stopped, tmp_path, arguments, caplog):
    run_dir, _ = stopped
    assert main(["export", str(run_dir), "--out", str(tmp_path / "model"), "--format", "hf"]) == 0
    training = json.loads((tmp_path / "model" / "model.json").read_text())["training"]
    assert training["checkpoint"] == "ckpt-2" and training["steps"] == 2
    assert training["dev_accuracy"] == measured(run_dir)[2]["accuracy"]
    assert training["loss"] == open_existing(run_dir).read_metrics()[1]["loss"]
    more = ["--init", str(run_dir), "--init-checkpoint", "latest"]
    with caplog.at_level("INFO", "labse"):
        assert main([*arguments(tmp_path / "next", steps=0), *more]) == 0
    assert "the newest checkpoint, of step 8" in caplog.text


def test_a_run_without_dev_pairs_has_no_best_one(stopped, tmp_path):
    shutil.copytree(stopped[0], tmp_path / "run")
    shutil.rmtree(tmp_path / "run/checkpoints/best")
    run_dir = open_existing(tmp_path / "run")
    assert choose_checkpoint(run_dir).step == 8
    with pytest.raises(InputError, match="has no best checkpoint"):
        choose_checkpoint(run_dir, "best")


def test_a_damaged_best_one_is_not_passed_over_in_silence(stopped, tmp_path):
    run_dir = tmp_path / "run"
    shutil.copytree(stopped[0], run_dir)
    (run_dir / "checkpoints/best/ckpt-2.index").write_bytes(b"")
    with pytest.raises(InputError, match="the best checkpoint is damaged.*--checkpoint latest"):
        choose_checkpoint(open_existing(run_dir))


def test_patience_needs_dev_pairs(tmp_path, config_file, capsys):
    command = ["train", str(config_file), "--run-dir", str(tmp_path / "run")]
    assert main([*command, "--set", "train.patience=2"]) == 2
    assert "'train.patience' is 2; it must be 0 without 'train.dev'" in capsys.readouterr().err


# Killed and resumed.


def kill_after(file, command):
    """Runs the command; kills it, without a chance to clean up, once the file is there."""
    process = forked.Process(*forked.LABSE, *command)
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline and not file.exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors
    assert file.exists(), errors


def test_a_killed_run_ends_with_the_same_best_one(tmp_path, arguments):
    """Killed when the first best one is in: after the last rolling checkpoint, of step 1."""
    settings = {"steps": 60, "dev_interval": 7, "patience": 4, "optimizer.warmup_steps": 5}
    settings |= {"loop.log_interval": 1, "loop.checkpoint_interval": 25}
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    kill_after(broken / "checkpoints/best/best.json", arguments(broken, **settings))
    for run_dir in (unbroken, broken):
        assert main(arguments(run_dir, **settings)) == 0
    steps = {step: found["accuracy"] for step, found in measured(unbroken).items()}
    assert {step: found["accuracy"] for step, found in measured(broken).items()} == steps
    found, expected = (read_best(run_dir / "checkpoints") for run_dir in (broken, unbroken))
    assert found[1:] == expected[1:]
    assert weights(found.path).keys() == weights(expected.path).keys()
    for name, value in weights(expected.path).items():
        np.testing.assert_allclose(weights(found.path)[name], value, atol=1e-6, err_msg=name)
    last = [latest_checkpoint(open_existing(run_dir)) for run_dir in (broken, unbroken)]
    assert Path(last[0]).name == Path(last[1]).name
