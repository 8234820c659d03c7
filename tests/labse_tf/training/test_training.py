"""Training from the command line, end to end: what a run leaves, and that a killed run resumes."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import forked
import numpy as np
import pytest
import tensorflow as tf
from runs import SHALLOW, arguments, assert_same_weights, labse_run, lines, weights

from labse_tf.cli.main import main
from labse_tf.config import TrainRun, load_config
from labse_tf.model.encoder import embed
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from labse_tf.training.runs.checkpoints import latest_checkpoint, load_encoder
from labse_tf.training.runs.run_dir import open_existing

LONG = 60


def kill_after_a_checkpoint(folder, *arguments):
    """Runs `labse ARGUMENTS`; kills it, without any chance to clean up, once a checkpoint is in."""
    process = forked.Process(*forked.LABSE, *arguments)
    deadline = time.monotonic() + 240
    while process.poll() is None and time.monotonic() < deadline:
        if any(folder.glob("ckpt-*.index")):
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, f"it ended before it was killed: {errors}"
    assert any(folder.glob("ckpt-*.index")), errors


# What the session's runs left.


def test_the_pretraining_run(pretrained_run):
    names = {path.name for path in pretrained_run.iterdir()}
    assert names == {
        "config.yaml", "vocab.txt", "checkpoints", "tensorboard", "metrics.jsonl", "counts.json",
    }  # fmt: skip
    stages = sorted(path.name for path in (pretrained_run / "checkpoints").iterdir())
    assert stages == ["stage_1", "stage_2"]
    found = lines(pretrained_run)
    assert [(line["stage"], line["step"]) for line in found] == [
        (stage, step) for stage in range(2) for step in (1, 2, 3)
    ]
    for line in found:
        assert line["loss"] > 0 and 0 <= line["accuracy"] <= 1 and line["gradient_norm"] > 0
        assert line["steps_per_second"] > 0 and line["tokens_per_second"] > 0
        assert set(line) >= {"learning_rate"}
    by_task = [{name for name in line if name.startswith(("mlm_", "tlm_"))} for line in found]
    assert {"mlm_loss", "mlm_accuracy", "mlm_filled"} in by_task
    assert {"tlm_loss", "tlm_accuracy"} in by_task
    # A loop of one step is of one task, whose loss is then the loss.
    for line in found:
        assert line["loss"] == line.get("mlm_loss", line.get("tlm_loss"))
        assert 0.9 < line.get("mlm_filled", 1.0) <= 1.0


def test_the_stages_have_their_depths(pretrained_run):
    for stage, depth in ((1, 1), (2, 2)):
        checkpoint = tf.train.latest_checkpoint(pretrained_run / "checkpoints" / f"stage_{stage}")
        # The weights of the layers, not the optimiser's slots, count here.
        kernels = [
            name
            for name in weights(checkpoint, "encoder")
            if "intermediate" in name and "kernel" in name
        ]
        assert len({name.split("/.ATTRIBUTES")[0] for name in kernels}) == depth


def test_the_training_run(trained_run, config_file):
    run_dir = open_existing(trained_run)
    assert run_dir.read_config(TrainRun).train == load_config(config_file).train
    assert run_dir.config.encoder.vocab_size == len(
        run_dir.vocab_file.read_text("utf-8").splitlines()
    )
    assert [line["step"] for line in lines(trained_run)] == [1, 2, 3, 4]
    assert "stage" not in lines(trained_run)[0]
    assert list((trained_run / "tensorboard").rglob("events.out.*"))
    assert Path(latest_checkpoint(run_dir)).name.startswith("ckpt-4")


def test_training_starts_from_the_pretrained_encoder(tmp_path, config_file, pretrained_run):
    """With 0 steps the run holds the encoder of --init unchanged."""
    run = tmp_path / "run"
    assert labse_run("train", config_file, run, "train.steps=0", init=pretrained_run) == 0
    found = load_encoder(open_existing(run)).get_weights()
    expected = load_encoder(open_existing(pretrained_run)).get_weights()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_finished_run_stays_as_it_is(pretrained_run, config_file):
    before = lines(pretrained_run)
    checkpoint = latest_checkpoint(open_existing(pretrained_run))
    expected = weights(checkpoint)
    assert labse_run("pretrain", config_file, pretrained_run) == 0
    assert latest_checkpoint(open_existing(pretrained_run)) == checkpoint
    for name, value in weights(checkpoint).items():
        np.testing.assert_array_equal(value, expected[name])
    assert lines(pretrained_run) == before


# Learning.


def test_a_small_set_is_memorised(tmp_path, config_file, tokenizer):
    """16 pairs in one batch: the loss falls, and every sentence finds its translation."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    pairs = [
        ("cat", "Katze"), ("dog", "Hund"), ("bird", "Vogel"), ("horse", "Pferd"),
        ("fish", "Fisch"), ("cow", "Kuh"), ("mouse", "Maus"), ("wolf", "Wolf"),
        ("house", "Haus"), ("tree", "Baum"), ("river", "Fluss"), ("moon", "Mond"),
        ("bread", "Brot"), ("book", "Buch"), ("cat and dog", "Katze und Hund"),
        ("tree and house", "Baum und Haus"),
    ]  # fmt: skip
    (corpus / "de.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    settings = {
        "train.bitext": f"[{corpus}]",
        "train.batch_size": 16,
        "train.bucket_lengths": "[24]",
        "train.steps": 240,
        "train.loop.log_interval": 20,
        "train.loop.checkpoint_interval": 240,
        "train.optimizer.learning_rate": 0.01,
        "train.optimizer.warmup_steps": 10,
        "encoder.num_layers": 1,
        "pretrain.stage_steps": "[1]",
        "encoder.hidden_size": 32,
    }
    run = tmp_path / "run"
    sets = [f"{key}={value}" for key, value in settings.items()]
    assert labse_run("train", config_file, run, *sets) == 0
    losses = [line["loss"] for line in lines(run)]
    # Chance is 2 log(1 + 15 e^3) = 11.4; with a margin of 0.3 even a perfect one keeps some.
    assert losses[-1] < 0.25 * losses[0]
    assert lines(run)[-1]["accuracy"] > 0.9
    encoder = load_encoder(open_existing(run))
    english, german = (
        embed(encoder, tokenizer.pack([tokenizer(tf.constant(side))], 24), training=False).numpy()
        for side in zip(*pairs, strict=True)
    )
    nearest = (english @ german.T).argmax(axis=1)
    assert np.mean(nearest == np.arange(16)) > 0.9


# Killed and resumed.


@pytest.fixture(scope="module")
def long_settings():
    """Long enough to be killed in, with a checkpoint early: at step 10, 40, 70 and so on."""
    values = {
        "train.steps": LONG,
        "train.loop.checkpoint_interval": 30,
        "train.loop.log_interval": 10,
        "pretrain.stage_steps": f"[10,{LONG}]",
        "pretrain.loop.checkpoint_interval": 30,
        "pretrain.loop.log_interval": 10,
        "encoder.num_layers": 2,
        "encoder.dropout": 0.1,
        "languages": "[de,th]",
        "train.bucket_lengths": "[16,24]",
    }
    return [f"{key}={value}" for key, value in values.items()]


@pytest.mark.slow
def test_a_killed_training_run_resumes_to_the_same_weights(tmp_path, config_file, long_settings):
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    sets = [*long_settings, *SHALLOW]
    kill_after_a_checkpoint(broken / "checkpoints", *arguments("train", config_file, broken, *sets))
    # A killed process may leave half a line, too.
    with open(broken / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 5, "lo')
    for run in (unbroken, broken):
        assert labse_run("train", config_file, run, *sets) == 0
    assert [line["step"] for line in lines(broken)] == list(range(10, LONG + 1, 10))
    found, expected = (latest_checkpoint(open_existing(run)) for run in (broken, unbroken))
    assert Path(found).name == Path(expected).name == f"ckpt-{LONG}"
    assert_same_weights(found, expected, least=50, atol=1e-6)
    for one, other in zip(lines(broken), lines(unbroken), strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-4)


@pytest.mark.slow
def test_pretraining_killed_in_its_second_stage_resumes(tmp_path, config_file, long_settings):
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    command = arguments("pretrain", config_file, broken, *long_settings)
    kill_after_a_checkpoint(broken / "checkpoints" / "stage_2", *command)
    for run in (unbroken, broken):
        assert labse_run("pretrain", config_file, run, *long_settings) == 0
    steps = [(line["stage"], line["step"]) for line in lines(broken)]
    assert steps == [(0, 10), *((1, step) for step in range(10, LONG + 1, 10))]
    found, expected = (latest_checkpoint(open_existing(run)) for run in (broken, unbroken))
    assert_same_weights(found, expected, least=50, atol=1e-6)


@pytest.mark.slow
def test_a_sampled_softmax_learns(tmp_path, config_file):
    run = tmp_path / "run"
    settings = {"sampled_softmax": 100, "stage_steps": "[40]", "loop.log_interval": 10}
    sets = [f"pretrain.{key}={value}" for key, value in settings.items()]
    assert labse_run("pretrain", config_file, run, "encoder.num_layers=1", *sets) == 0
    losses = [line["loss"] for line in lines(run)]
    assert losses[-1] < 0.8 * losses[0]


def test_overwrite_starts_afresh(tmp_path, trained_run, config_file):
    run = tmp_path / "run"
    shutil.copytree(trained_run, run)
    command = arguments("train", config_file, run, "train.steps=2")
    assert main([*command, "--overwrite"]) == 0
    assert [line["step"] for line in lines(run)] == [1, 2]
    assert open_existing(run).read_config(TrainRun).train.steps == 2


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_the_run_and_names_step_and_files(
    tmp_path, config_file, capfd
):
    run = tmp_path / "run"
    settings = ["pretrain.optimizer.learning_rate=1e30", "pretrain.tlm_fraction=1.0"]
    settings += ["pretrain.optimizer.warmup_steps=0", "languages=[th]"]
    assert labse_run("pretrain", config_file, run, *settings) == 2
    error = capfd.readouterr().err.strip().splitlines()[-1]
    assert "the loss or the gradient of step 2 is not finite (its batch is from " in error
    assert "th.tsv)" in error and "lower optimizer.learning_rate" in error
    # Nothing after step 1, whose loss was the last good one.
    assert [line["step"] for line in lines(run)] == [1]
    assert Path(tf.train.latest_checkpoint(run / "checkpoints" / "stage_1")).name == "ckpt-1"


def test_a_tpu_gets_batches_of_one_length(tmp_path, config_file, monkeypatch):
    """No TPU here: one device is taken for one, with its rules."""
    monkeypatch.setattr(tf.distribute, "TPUStrategy", tf.distribute.OneDeviceStrategy)
    lengths = set()
    pack = WordPieceTokenizer.pack

    def noting(self, segments, length):
        lengths.add(length)
        return pack(self, segments, length)

    monkeypatch.setattr(WordPieceTokenizer, "pack", noting)
    sets = ("pretrain.stage_steps=[1]", "train.steps=2")
    assert labse_run("train", config_file, tmp_path / "run", *sets) == 0
    assert lengths == {32}


@pytest.mark.slow
def test_lazy_updates_train_the_weights_of_dense_ones(tmp_path, config_file):
    """Rows that no batch holds (German has no Thai characters) decay in both."""

    def table(name, *sets):
        sets = (*SHALLOW, "languages=[de]", "train.bucket_lengths=[24]", *sets)
        assert labse_run("train", config_file, tmp_path / name, *sets) == 0
        return load_encoder(open_existing(tmp_path / name)).get_embedding_table().numpy()

    start = table("start", "train.steps=0")
    lazy, dense = (
        table(
            value,
            "train.steps=12",
            f"train.optimizer.lazy_embeddings={value}",
            "train.optimizer.learning_rate=0.01",
        )
        for value in ("true", "false")
    )
    assert np.linalg.norm(lazy - dense) < 0.01 * np.linalg.norm(dense - start)
