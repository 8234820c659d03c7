"""Training from the command line, end to end: what a run leaves, and that a killed run resumes."""

from __future__ import annotations

import json
import re
import shutil
import signal
import time
from pathlib import Path

import forked
import numpy as np
import pytest
import tensorflow as tf

from labse_tf.cli.main import main
from labse_tf.config.files import load_config
from labse_tf.model.encoder import embed
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from labse_tf.training.runs.checkpoints import latest_checkpoint, load_encoder
from labse_tf.training.runs.run_dir import open_existing

LONG = 60


def train(config_file, run_dir, *more):
    return main(["train", str(config_file), "--run-dir", str(run_dir), *more])


def metrics(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def weights(checkpoint):
    """Every variable of a checkpoint by its name, Python-side counters left out."""
    names = [name for name, _ in tf.train.list_variables(checkpoint)]
    return {
        name: tf.train.load_variable(checkpoint, name)
        for name in names
        if name.endswith("VARIABLE_VALUE") and "save_counter" not in name
    }


def assert_same_weights(found, expected, least=50):
    found, expected = weights(found), weights(expected)
    assert set(found) == set(expected) and len(expected) > least
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6, err_msg=name)


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
    lines = metrics(pretrained_run)
    assert [(line["stage"], line["step"]) for line in lines] == [
        (stage, step) for stage in range(2) for step in (1, 2, 3)
    ]
    for line in lines:
        assert line["loss"] > 0 and 0 <= line["accuracy"] <= 1 and line["gradient_norm"] > 0
        assert line["steps_per_second"] > 0 and line["tokens_per_second"] > 0
        assert set(line) >= {"learning_rate"}
    by_task = [{name for name in line if name.startswith(("mlm_", "tlm_"))} for line in lines]
    assert {"mlm_loss", "mlm_accuracy", "mlm_filled"} in by_task
    assert {"tlm_loss", "tlm_accuracy"} in by_task
    # A loop of one step is of one task, whose loss is then the loss.
    for line in lines:
        assert line["loss"] == line.get("mlm_loss", line.get("tlm_loss"))
        assert 0.9 < line.get("mlm_filled", 1.0) <= 1.0


def test_the_stages_have_their_depths(pretrained_run):
    for stage, depth in ((1, 1), (2, 2)):
        checkpoint = tf.train.latest_checkpoint(pretrained_run / "checkpoints" / f"stage_{stage}")
        # The weights of the layers, not the optimiser's slots, count here.
        kernels = [
            name
            for name in weights(checkpoint)
            if name.startswith("encoder/") and "intermediate" in name and "kernel" in name
        ]
        assert len({name.split("/.ATTRIBUTES")[0] for name in kernels}) == depth


def test_the_training_run(trained_run, config_file):
    run_dir = open_existing(trained_run)
    assert run_dir.config.train == load_config(config_file).train
    assert run_dir.config.encoder.vocab_size == len(
        run_dir.vocab_file.read_text("utf-8").splitlines()
    )
    assert [line["step"] for line in metrics(trained_run)] == [1, 2, 3, 4]
    assert "stage" not in metrics(trained_run)[0]
    assert list((trained_run / "tensorboard").rglob("events.out.*"))
    assert Path(latest_checkpoint(run_dir)).name.startswith("ckpt-4")


def test_training_starts_from_the_pretrained_encoder(tmp_path, config_file, pretrained_run):
    """With 0 steps the run holds the encoder of --init unchanged."""
    run = tmp_path / "run"
    arguments = ["--init", str(pretrained_run), "--set", "train.steps=0"]
    assert train(config_file, run, *arguments) == 0
    found = load_encoder(open_existing(run)).get_weights()
    expected = load_encoder(open_existing(pretrained_run)).get_weights()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_finished_run_stays_as_it_is(pretrained_run, config_file):
    before = metrics(pretrained_run)
    checkpoint = latest_checkpoint(open_existing(pretrained_run))
    expected = weights(checkpoint)
    assert main(["pretrain", str(config_file), "--run-dir", str(pretrained_run)]) == 0
    assert latest_checkpoint(open_existing(pretrained_run)) == checkpoint
    for name, value in weights(checkpoint).items():
        np.testing.assert_array_equal(value, expected[name])
    assert metrics(pretrained_run) == before


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
    overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    run = tmp_path / "run"
    assert train(config_file, run, *overrides) == 0
    losses = [line["loss"] for line in metrics(run)]
    # Chance is 2 log(1 + 15 e^3) = 11.4; with a margin of 0.3 even a perfect one keeps some.
    assert losses[-1] < 0.25 * losses[0]
    assert metrics(run)[-1]["accuracy"] > 0.9
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
    return [part for key, value in values.items() for part in ("--set", f"{key}={value}")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "sets",
    [
        ["encoder.num_layers=1"],
        # Which tokens are split is drawn anew at each step.
        ["encoder.num_layers=0", "encoder.subwords=[1,3]", "encoder.split_rate=0.3"],
    ],
)
def test_a_killed_training_run_resumes_to_the_same_weights(
    tmp_path, config_file, long_settings, sets
):
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    # A table is one variable: with its optimiser's and the step, 8 are saved.
    least = 7 if "encoder.num_layers=0" in sets else 50
    sets = [f"--set={one}" for one in (*sets, "pretrain.stage_steps=[1]")]
    long_settings = [*long_settings, *sets]
    arguments = ["train", config_file, "--run-dir", broken, *long_settings]
    kill_after_a_checkpoint(broken / "checkpoints", *arguments)
    # A killed process may leave half a line, too.
    with open(broken / "metrics.jsonl", "a", encoding="utf-8") as file:
        file.write('{"step": 5, "lo')
    assert train(config_file, unbroken, *long_settings) == 0
    assert train(config_file, broken, *long_settings) == 0
    assert [line["step"] for line in metrics(broken)] == list(range(10, LONG + 1, 10))
    found, expected = (latest_checkpoint(open_existing(run)) for run in (broken, unbroken))
    assert Path(found).name == Path(expected).name == f"ckpt-{LONG}"
    assert_same_weights(found, expected, least)
    for one, other in zip(metrics(broken), metrics(unbroken), strict=True):
        assert one["step"] == other["step"]
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-4)


@pytest.mark.slow
def test_pretraining_killed_in_its_second_stage_resumes(tmp_path, config_file, long_settings):
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    arguments = ["pretrain", config_file, "--run-dir", broken, *long_settings]
    kill_after_a_checkpoint(broken / "checkpoints" / "stage_2", *arguments)
    for run in (unbroken, broken):
        command = ["pretrain", str(config_file), "--run-dir", str(run), *long_settings]
        assert main(command) == 0
    steps = [(line["stage"], line["step"]) for line in metrics(broken)]
    assert steps == [(0, 10), *((1, step) for step in range(10, LONG + 1, 10))]
    found, expected = (latest_checkpoint(open_existing(run)) for run in (broken, unbroken))
    assert_same_weights(found, expected)


@pytest.mark.slow
def test_a_sampled_softmax_learns(tmp_path, config_file):
    run = tmp_path / "run"
    settings = {"sampled_softmax": 100, "stage_steps": "[40]", "loop.log_interval": 10}
    overrides = [f"--set=pretrain.{key}={value}" for key, value in settings.items()]
    overrides.append("--set=encoder.num_layers=1")
    assert main(["pretrain", str(config_file), "--run-dir", str(run), *overrides]) == 0
    losses = [line["loss"] for line in metrics(run)]
    assert losses[-1] < 0.8 * losses[0]


def test_a_loss_that_is_not_finite_stops_the_run_at_the_last_good_checkpoint(
    tmp_path, config_file, capsys
):
    run = tmp_path / "run"
    settings = {"steps": 50, "loop.checkpoint_interval": 1, "loop.log_interval": 1}
    settings |= {"optimizer.learning_rate": 1e30, "optimizer.warmup_steps": 0}
    overrides = [f"--set=train.{key}={value}" for key, value in settings.items()]
    overrides += ["--set=encoder.num_layers=1", "--set=pretrain.stage_steps=[1]"]
    assert train(config_file, run, *overrides) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    step = int(re.search(r"of step (\d+) is not finite", error)[1])
    last = tf.train.latest_checkpoint(run / "checkpoints")
    assert last is None or last.endswith(f"ckpt-{step - 1}")
    assert [line["step"] for line in metrics(run)] == list(range(1, step))


def test_overwrite_starts_afresh(tmp_path, trained_run, config_file):
    run = tmp_path / "run"
    shutil.copytree(trained_run, run)
    assert train(config_file, run, "--overwrite", "--set", "train.steps=2") == 0
    assert [line["step"] for line in metrics(run)] == [1, 2]
    assert open_existing(run).config.train.steps == 2


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_the_run_and_names_step_and_files(
    tmp_path, config_file, capfd
):
    run = tmp_path / "run"
    arguments = ["pretrain", str(config_file), "--run-dir", str(run)]
    settings = ["pretrain.optimizer.learning_rate=1e30", "pretrain.tlm_fraction=1.0"]
    settings += ["pretrain.optimizer.warmup_steps=0", "languages=[th]"]
    assert main([*arguments, *(f"--set={setting}" for setting in settings)]) == 2
    error = capfd.readouterr().err.strip().splitlines()[-1]
    assert "the loss or the gradient of step 2 is not finite (its batch is from " in error
    assert "th.tsv)" in error and "lower optimizer.learning_rate" in error
    # That of step 1, whose loss was the last good one.
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
    changes = [f"--set={one}" for one in ("pretrain.stage_steps=[1]", "train.steps=2")]
    assert train(config_file, tmp_path / "run", *changes) == 0
    assert lengths == {32}


SMALL_GERMAN = (
    "--set=languages=[de]",
    "--set=encoder.num_layers=1",
    "--set=pretrain.stage_steps=[1]",
    "--set=train.bucket_lengths=[24]",
)


@pytest.mark.slow
def test_lazy_updates_train_the_weights_of_dense_ones(tmp_path, config_file):
    found = []
    for lazy in ("true", "false"):
        changes = ["--set=train.steps=12", f"--set=train.optimizer.lazy_embeddings={lazy}"]
        changes.append("--set=train.optimizer.learning_rate=0.01")
        run = tmp_path / lazy
        assert train(config_file, run, *SMALL_GERMAN, *changes) == 0
        found.append(load_encoder(open_existing(run)).get_embedding_table().numpy())
    # Rows that no batch holds (German has no Thai characters) decay in both.
    lazy, dense = found
    moved = np.linalg.norm(dense - load_encoder_at_start(tmp_path, config_file))
    assert np.linalg.norm(lazy - dense) < 0.01 * moved


def load_encoder_at_start(tmp_path, config_file):
    assert train(config_file, tmp_path / "start", *SMALL_GERMAN, "--set=train.steps=0") == 0
    return load_encoder(open_existing(tmp_path / "start")).get_embedding_table().numpy()
