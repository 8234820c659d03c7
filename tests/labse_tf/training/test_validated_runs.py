"""Runs of `labse train` with dev pairs: what they leave, stop at, and go on with."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from runs import SHALLOW, assert_same_weights, cut_short, held_out, labse_run, lines, weights
from text_files import content_of

from labse_tf.cli.main import main
from labse_tf.errors import InputError
from labse_tf.training.runs.checkpoints import choose_checkpoint, latest_checkpoint, read_best
from labse_tf.training.runs.run_dir import open_existing


@pytest.fixture(scope="module")
def train(config_file, bitext_dir):
    """`labse train` of a small encoder on German, so that no batch has the Thai characters."""

    def run(run_dir, *, init=None, **changes):
        settings = {"bucket_lengths": "[24]", "dev": f"[{bitext_dir}]", "dev_size": 30, **changes}
        sets = ["languages=[de]", *(f"train.{key}={value}" for key, value in settings.items())]
        return labse_run("train", config_file, run_dir, *SHALLOW, *sets, init=init)

    return run


def measured(run_dir):
    return held_out(run_dir, "retrieval")


SETTINGS = {"steps": 8, "dev_interval": 3, "loop.log_interval": 2}
SETTINGS |= {"loop.checkpoint_interval": 2, "loop.checkpoints_kept": 9}


@pytest.mark.slow
def test_a_run_measures_keeps_the_best_and_ends_so_if_cut_short(tmp_path, train):
    run, broken = tmp_path / "run", tmp_path / "broken"
    assert train(run, **SETTINGS) == 0
    assert list(measured(run)) == [3, 6, 8]
    for found in measured(run).values():
        assert found["pairs"] == 30 and set(found["by_language"]) == {"de"}
    assert [line["step"] for line in lines(run, "loss")] == [2, 3, 5, 6, 8]
    assert list((run / "tensorboard" / "held_out").rglob("events*"))
    # The best one is written while measuring, and up to date in rows that no batch held.
    best = read_best(run / "checkpoints")
    accuracies = {step: found["accuracy"] for step, found in measured(run).items()}
    assert best.accuracy == max(accuracies.values()) == accuracies[best.step]
    optimizer = weights(latest_checkpoint(open_existing(run)), "optimizer").values()
    (last_steps,) = (one for one in optimizer if one.dtype == np.int32 and one.ndim == 1)
    assert (last_steps == 8).all()  # The steps of the table's rows in the newest checkpoint.
    # A killed run may have a best one of a step that is measured again.
    steps = sorted(int(path.stem[5:]) for path in (run / "checkpoints").glob("ckpt-*.index"))
    lost = [step for step in steps if step > 3]
    cut_short(run, broken, *lost)
    assert train(broken, **SETTINGS) == 0
    assert measured(broken) == measured(run)
    found, expected = (read_best(path / "checkpoints") for path in (broken, run))
    assert (found.step, *found[1:]) == (expected.step, *expected[1:])
    assert_same_weights(found.path, expected.path, "encoder", least=15)
    for step in lost:
        assert_same_weights(*(path / "checkpoints" / f"ckpt-{step}" for path in (broken, run)))


def test_0_steps_measure_what_the_run_starts_from(tmp_path, train):
    assert train(tmp_path / "run", steps=0) == 0
    assert list(measured(tmp_path / "run")) == [0]
    assert read_best(tmp_path / "run/checkpoints").step == 0
    assert latest_checkpoint(open_existing(tmp_path / "run")).endswith("ckpt-0")


# Early stopping. Without a learning rate no accuracy is better than the first.
STILL = {"optimizer.learning_rate": 0, "steps": 50, "dev_interval": 2, "patience": 2}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, train):
    run_dir = tmp_path_factory.mktemp("stopped") / "run"
    assert train(run_dir, **STILL) == 0
    return run_dir


def test_a_run_stops_without_a_better_accuracy_and_stays_so(stopped, train, caplog):
    assert list(measured(stopped)) == [2, 4, 6]
    assert read_best(stopped / "checkpoints").step == 2
    assert latest_checkpoint(open_existing(stopped)).endswith("ckpt-6")
    before = content_of(stopped)
    with caplog.at_level("INFO", "labse"):
        assert train(stopped, **STILL) == 0
    assert "stopped at step 6 of 50: 2 measurements without improvement" in caplog.text
    assert content_of(stopped) == before


def test_which_checkpoint_is_read(stopped, tmp_path, caplog):
    run_dir = open_existing(stopped)
    with caplog.at_level("INFO", "labse"):
        chosen = choose_checkpoint(run_dir)
    assert "the checkpoint of step 2, the best: accuracy 0." in caplog.text
    assert chosen == choose_checkpoint(run_dir, "best")
    assert chosen.step == 2 and chosen.accuracy == measured(run_dir.path)[2]["accuracy"]
    newest = choose_checkpoint(run_dir, "latest")
    assert newest.step == 6 and newest.accuracy is None
    assert_same_weights(chosen.path, newest.path, "encoder")  # The learning rate was 0.
    # Without a whole best one.
    path = tmp_path / "run"
    shutil.copytree(stopped, path)
    (path / "checkpoints/best/ckpt-2.index").write_bytes(b"")
    with pytest.raises(InputError, match="the best checkpoint is damaged.*--checkpoint latest"):
        choose_checkpoint(open_existing(path))
    shutil.rmtree(path / "checkpoints/best")
    assert choose_checkpoint(open_existing(path)).step == 6
    with pytest.raises(InputError, match="has no best checkpoint"):
        choose_checkpoint(open_existing(path), "best")


@pytest.mark.slow
def test_export_and_init_take_the_one_that_is_asked_for(stopped, tmp_path, config_file, caplog):
    assert main(["export", str(stopped), "--out", str(tmp_path / "model"), "--format", "hf"]) == 0
    training = json.loads((tmp_path / "model" / "model.json").read_text())["training"]
    assert training["checkpoint"] == "ckpt-2" and training["steps"] == 2
    assert training["dev_accuracy"] == measured(stopped)[2]["accuracy"]
    assert training["loss"] == lines(stopped)[1]["loss"]
    command = ["train", str(config_file), "--run-dir", str(tmp_path / "next")]
    more = ["--init", str(stopped), "--init-checkpoint", "latest", "--set=train.steps=0"]
    with caplog.at_level("INFO", "labse"):
        assert main([*command, *more, *(f"--set={one}" for one in SHALLOW)]) == 0
    assert "the newest checkpoint, of step 6" in caplog.text
