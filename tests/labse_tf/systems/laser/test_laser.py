"""Runs of `labse train-laser`: learned by heart, resumed, measured, exported, refused."""

from __future__ import annotations

import json
import math
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tiny_text import sentences_of

import labse_tf
from labse_tf.cli.main import main
from labse_tf.systems.laser.config import LaserRun
from labse_tf.systems.laser.train import build_decoder
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing

SETS = (
    *("pretrain.monolingual=[]", "pretrain.bitext=[]"),
    *("encoder.network=bilstm", "encoder.hidden_size=48", "encoder.embedding_size=16"),
    *("encoder.num_layers=1", "encoder.initializer_range=0.1", "laser.targets=[en,de]"),
    *("laser.batch_tokens=512", "laser.bucket_lengths=[16,32]", "laser.decoder_size=64"),
    *("laser.language_size=4", "laser.output_size=32", "laser.optimizer.learning_rate=0.01"),
    *("laser.loop.log_interval=2", "laser.loop.checkpoint_interval=2"),
)


@pytest.fixture(scope="module")
def train(config_file, bitext_dir):
    def run(run_dir, *sets, options=()):
        changes = [f"--set={one}" for one in (*SETS, f"laser.bitext=[{bitext_dir}]", *sets)]
        return main(
            ["train-laser", str(config_file), "--run-dir", str(run_dir), *changes, *options]
        )

    return run


def measured(run_dir):
    lines = map(json.loads, (run_dir / "metrics.jsonl").read_text("utf-8").splitlines())
    return [line["held_out"]["translation"] for line in lines if "held_out" in line]


@pytest.mark.slow
def test_it_learns_by_heart_and_the_language_chooses_the_output(
    train, tmp_path, bitext_dir, capsys
):
    """48 sentences of 7 languages: the decoder spells them from their vectors alone."""
    german = tmp_path / "german"
    german.mkdir()
    for code in ("ja", "th"):
        pairs = zip(sentences_of("de"), sentences_of(code), strict=True)
        lines = "".join("\t".join(pair) + "\n" for pair in pairs)
        (german / f"{code}.tsv").write_text(lines, "utf-8")
    changes = [f"laser.target_bitext=[de={german}]", "laser.held_out_interval=450"]
    changes += ["laser.steps=450", "laser.loop.log_interval=100"]
    changes += ["laser.loop.checkpoint_interval=450", f"laser.held_out=[{bitext_dir}]"]
    assert train(tmp_path / "run", *changes) == 0
    (found,) = measured(tmp_path / "run")
    assert found["accuracy"] > 0.98
    texts = {code: tmp_path / f"{code}.txt" for code in ("ja", "th", "en")}
    for code, path in texts.items():
        path.write_text("\n".join(sentences_of(code)) + "\n", "utf-8")
    for source, target in (("ja", "en"), ("ja", "de"), ("th", "en"), ("th", "de"), ("en", "de")):
        out = tmp_path / f"{source}-{target}.txt"
        command = ["translate", str(tmp_path / "run"), str(texts[source]), "--to", target]
        assert main([*command, "--out", str(out), "--beam", "1" if source == "th" else "3"]) == 0
        found = out.read_text("utf-8").splitlines()
        # The tiny vocabulary's pieces are characters: spaces are between words all the same.
        right = [one == other for one, other in zip(found, sentences_of(target), strict=True)]
        assert sum(right) >= 46
    assert main([*command, "--out", str(out)]) == 2  # It is there.
    assert main([*command[:-1], "fr", "--out", str(tmp_path / "fr.txt")]) == 2
    assert "does not translate into fr; choose from en, de" in capsys.readouterr().err


@pytest.fixture(scope="module")
def laser_run(train, bitext_dir, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("laser") / "run"
    changes = [f"laser.held_out=[{bitext_dir}]", "laser.held_out_interval=2"]
    assert train(run_dir, "laser.steps=4", "laser.sampled_softmax=20", *changes) == 0
    return run_dir


def test_held_out_loss_by_pair(laser_run, bitext_dir):
    first, last = measured(laser_run)
    assert set(last["by_pair"]) == {"ar-en", "de-en", "en-de", "fr-en", "ja-en", "ru-en", "th-en"}
    tokens = sum(one["tokens"] for one in last["by_pair"].values())
    total = sum(one["tokens"] * one["loss"] for one in last["by_pair"].values())
    assert last["tokens"] == tokens
    assert math.isclose(last["loss"], total / tokens, rel_tol=1e-6)
    assert math.isclose(last["perplexity"], math.exp(last["loss"]), rel_tol=1e-6)
    assert last["loss"] < first["loss"]
    best = json.loads((laser_run / "checkpoints" / "best" / "best.json").read_text("utf-8"))
    assert (best["step"], best["task"]) == (4, "translation")


def test_a_stopped_run_ends_with_the_same_weights(train, laser_run, bitext_dir, tmp_path):
    """With a sampled softmax, whose sample depends on the step."""
    run_dir = tmp_path / "run"
    shutil.copytree(laser_run, run_dir)
    for file in (run_dir / "checkpoints").glob("ckpt-4*"):
        file.unlink()
    changes = [f"laser.held_out=[{bitext_dir}]", "laser.held_out_interval=2"]
    assert train(run_dir, "laser.steps=4", "laser.sampled_softmax=20", *changes) == 0
    last = [
        tf.train.load_checkpoint(str(one / "checkpoints" / "ckpt-4"))
        for one in (run_dir, laser_run)
    ]
    names = [name for name in last[0].get_variable_to_shape_map() if "VARIABLE_VALUE" in name]
    assert any("decoder" in name for name in names) and any("encoder" in name for name in names)
    for name in names:
        np.testing.assert_array_equal(last[0].get_tensor(name), last[1].get_tensor(name))


def test_the_exported_encoder(laser_run, tmp_path, multilingual_sentences):
    out = tmp_path / "model"
    command = ["export", str(laser_run), "--out", str(out), "--no-verify"]
    assert main([*command, "--format", "hub"]) == 0
    facts = json.loads((out / "model.json").read_text("utf-8"))["training"]
    assert (facts["kind"], facts["targets"], facts["batch_size"]) == (
        "translation",
        ["en", "de"],
        512,
    )
    card = (out / "README.md").read_text("utf-8")
    assert "512 tokens, translated from their vectors into English (en) or German (de)" in card
    vectors = labse_tf.load(out).encode(multilingual_sentences)
    run = open_existing(laser_run)
    encoder, tokenizer = load_encoder(run), load_tokenizer(run)
    inputs = tokenizer.pack([tokenizer(tf.constant(multilingual_sentences))], 64)
    expected = tf.math.l2_normalize(encoder(inputs)["pooled_output"], axis=1)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_a_transformer_can_be_the_encoder(train, laser_run, tmp_path):
    """Of its vectors, only the direction counts; of an LSTM's, the length too."""
    sets = ("encoder.network=bert", "encoder.embedding_size=0", "encoder.hidden_size=16")
    assert train(tmp_path / "run", *sets, "laser.steps=2") == 0
    for run_dir, alone in ((tmp_path / "run", True), (laser_run, False)):
        run = open_existing(run_dir)
        encoder = load_encoder(run)
        decoder = build_decoder(run.read_config(LaserRun), encoder)
        vectors = tf.random.stateless_normal([3, run.config.encoder.hidden_size], [1, 2])
        previous = tf.ones([3, 4], tf.int32)
        read = [decoder((scale * vectors, tf.zeros([3], tf.int32), previous)) for scale in (1, 9)]
        assert np.allclose(*read, atol=1e-6) == alone


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("laser.targets=[en]", "two or more different codes"),
        ("laser.targets=[en,en]", "two or more different codes"),
        ("laser.targets=[en,xx]", "two or more different codes"),
        ("laser.target_bitext=[fr=here]", "a list of LANGUAGE=PATH"),
        ("laser.batch_tokens=16", "32 or more"),
        ("laser.bucket_lengths=[16,500]", "to encoder.max_positions"),
        ("laser.bitext=[]", "no pair of 'laser.bitext' has a target in en, de"),
        ("languages=[ja]", "no pair translates en"),
        ("laser.optimizer.decay=cosine", "one of 'linear' or 'constant'"),
    ],
)
def test_bad_settings_are_refused(train, tmp_path, change, message, capsys):
    assert train(tmp_path / "run", change) == 2
    assert re.search(message, capsys.readouterr().err)
