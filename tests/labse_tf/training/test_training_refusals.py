"""What training from the command line refuses, and that it leaves everything as it was."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil

import pytest
import tensorflow as tf
from runs import labse_run

from labse_tf.cli.main import main


@contextlib.contextmanager
def lock(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def refused(capsys, arguments):
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    errors = [line for line in captured.err.splitlines() if line.startswith("labse: error: ")]
    assert len(errors) == 1
    return errors[0]


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "override, key",
    [
        ("train.margin=0.2", "train.margin"),
        ("seed=8", "seed"),
        ("encoder.dropout=0.1", "encoder.dropout"),
        ("train.optimizer.learning_rate=0.5", "train.optimizer.learning_rate"),
    ],
)
def test_another_configuration_is_refused(capsys, trained_run, config_file, override, key):
    before = contents(trained_run)
    arguments = ["train", config_file, "--run-dir", trained_run, "--set", override]
    error = refused(capsys, arguments)
    assert "another configuration" in error and f"({key})" in error
    assert contents(trained_run) == before


def test_another_vocabulary_is_refused(capsys, tmp_path, trained_run, config_file, vocab_file):
    lines = vocab_file.read_text("utf-8").splitlines()
    other = tmp_path / "vocab.txt"
    other.write_text("\n".join([*lines[:-1], "##other"]) + "\n", "utf-8")
    arguments = ["train", config_file, "--run-dir", trained_run]
    error = refused(capsys, [*arguments, "--set", f"tokenizer.vocab_file={other}"])
    assert "the vocabulary" in error


def test_the_same_vocabulary_elsewhere_is_the_same(tmp_path, trained_run, config_file, vocab_file):
    moved = tmp_path / "moved.txt"
    shutil.copyfile(vocab_file, moved)
    before = contents(trained_run)
    arguments = ["train", str(config_file), "--run-dir", str(trained_run)]
    assert main([*arguments, "--set", f"tokenizer.vocab_file={moved}"]) == 0
    assert contents(trained_run) == before


def test_a_locked_run_is_refused(capsys, trained_run, config_file):
    before = contents(trained_run)
    with lock(trained_run):
        error = refused(capsys, ["train", config_file, "--run-dir", trained_run])
    assert "another process is using" in error
    assert contents(trained_run) == before


@pytest.mark.parametrize("name", ["run [v2]", "a*b", "q?"])
def test_a_path_that_tensorflow_takes_as_a_pattern_is_refused(capsys, tmp_path, config_file, name):
    error = refused(capsys, ["train", config_file, "--run-dir", tmp_path / name])
    assert "as a pattern" in error
    assert not any(tmp_path.iterdir())


def test_init_with_another_encoder_is_refused(capsys, tmp_path, pretrained_run, config_file):
    run = tmp_path / "run"
    arguments = ["train", config_file, "--run-dir", run, "--init", pretrained_run]
    error = refused(capsys, [*arguments, "--set", "encoder.intermediate_size=64"])
    assert "'encoder.intermediate_size' is 64, --init" in error
    assert "add --set encoder.intermediate_size=32" in error
    assert not run.exists()


@pytest.mark.parametrize(
    "overrides, problem",
    [
        (["tokenizer.vocab_file="], "vocab_file"),
        (["tokenizer.vocab_file=/nowhere/vocab.txt"], "no such file"),
        (["encoder.vocab_size=150"], "'encoder.vocab_size' is 150"),
        (["train.bitext=[]"], "'train.bitext' is empty"),
        (["train.bitext=[/nowhere]"], "no such file or folder"),
        (["train.dev=[/nowhere]"], "no such file or folder"),
        (["languages=[sw]"], "has no text in sw"),
    ],
)
def test_a_run_that_cannot_start_leaves_nothing(capsys, tmp_path, config_file, overrides, problem):
    """Else the mended command would be refused: it differs from the configuration left behind."""
    run = tmp_path / "run"
    more = [part for override in overrides for part in ("--set", override)]
    assert problem in refused(capsys, ["train", config_file, "--run-dir", run, *more])
    assert not run.exists() or list(run.iterdir()) == []


def test_a_folder_that_is_no_run(capsys, tmp_path, config_file):
    (tmp_path / "notes.txt").write_text("mine")
    error = refused(capsys, ["train", config_file, "--run-dir", tmp_path])
    assert "holds no run" in error
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("command", ["pretrain", "train"])
def test_shards_from_which_all_was_filtered(tmp_path, config_file, capfd, command):
    for kind in ("bitext", "monolingual"):
        shard = tmp_path / kind / "th" / "part-00000-of-00001.tfrecord.gz"
        shard.parent.mkdir(parents=True)
        tf.io.TFRecordWriter(str(shard), tf.io.TFRecordOptions(compression_type="GZIP")).close()
    inputs = [f"--set={name}=[{tmp_path}/bitext]" for name in ("pretrain.bitext", "train.bitext")]
    inputs += [f"--set=pretrain.monolingual=[{tmp_path}/monolingual]"]
    run = tmp_path / "run"
    assert main([command, str(config_file), "--run-dir", str(run), *inputs]) == 2
    assert "the corpora hold no records; see why in report.json" in capfd.readouterr().err
    assert not run.exists()


@pytest.mark.parametrize(
    ("copies", "settings"),
    [(1, ()), (5, ()), (5, ("train.cache_tokens=true",)), (5, ("train.chunk_size=4",))],
)
def test_copies_of_one_pair_leave_nothing_to_learn(config_file, tmp_path, capsys, settings, copies):
    (tmp_path / "bitext").mkdir()
    (tmp_path / "bitext" / "de.tsv").write_text("A house\tEin Haus\n" * copies, "utf-8")
    sets = (f"train.bitext=[{tmp_path}/bitext]", *settings)
    assert labse_run("train", config_file, tmp_path / "run", *sets) == 2
    errors = [line for line in capsys.readouterr().err.split("\n") if "error: " in line]
    assert len(errors) == 1 and "different texts" in errors[0]
