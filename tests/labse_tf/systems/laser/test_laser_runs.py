"""Runs of LASER's encoder, by `labse train` and `train-laser`: trained, resumed, exported, used."""

from __future__ import annotations

import json
import math
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from text_files import write_lines
from tiny_text import sentences_of

import labse_tf
from labse_tf.cli.main import main
from labse_tf.systems.laser.config import LaserRun
from labse_tf.systems.laser.train import build_decoder
from labse_tf.systems.laser.translators import open_translator
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing
from labse_tf.training.validation import RunEmbedder

BILSTM = (
    *("encoder.network=bilstm", "encoder.embedding_size=16", "encoder.hidden_size=24"),
    "train.optimizer.learning_rate=0.01",
)
LASER = (
    *("pretrain.monolingual=[]", "pretrain.bitext=[]"),
    *("encoder.network=bilstm", "encoder.hidden_size=48", "encoder.embedding_size=16"),
    *("encoder.num_layers=1", "encoder.initializer_range=0.1", "laser.targets=[en,de]"),
    *("laser.batch_tokens=512", "laser.bucket_lengths=[16,32]", "laser.decoder_size=64"),
    *("laser.language_size=4", "laser.output_size=32", "laser.optimizer.learning_rate=0.01"),
    *("laser.loop.log_interval=2", "laser.loop.checkpoint_interval=2"),
)


def labse(*arguments):
    return main([str(one) for one in arguments])


def weights(run_dir):
    return [variable.numpy() for variable in load_encoder(open_existing(run_dir)).variables]


# `labse train`.


@pytest.fixture(scope="module")
def train(config_file):
    def run(run_dir, init, *sets):
        changes = [f"--set={one}" for one in (*BILSTM, *sets)]
        return labse("train", config_file, "--run-dir", run_dir, "--init", init, *changes)

    return run


@pytest.fixture(scope="module")
def bilstm_run(train, static_run, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("bilstm") / "run"
    assert train(run_dir, static_run, "encoder.dropout=0.1") == 0
    return run_dir


@pytest.fixture(scope="module")
def bilstm_model(bilstm_run):
    out = bilstm_run.parent / "model"
    assert labse("export", bilstm_run, "--format", "hub,onnx", "--no-verify", "--out", out) == 0
    return out


def test_the_model_dir_and_its_runtimes(bilstm_run, bilstm_model, multilingual_sentences):
    facts = json.loads((bilstm_model / "model.json").read_text("utf-8"))
    assert (facts["encoder"]["network"], facts["encoder"]["pooling"]) == ("bilstm", "max")
    card = (bilstm_model / "README.md").read_text("utf-8")
    assert "bidirectional LSTM, 2 layers, 24 wide, the maximum over tokens" in card
    texts = [*multilingual_sentences[::4], "", "แมว " * 30]
    expected = labse_tf.load(bilstm_model).encode(texts)
    run = open_existing(bilstm_run)
    embedder = RunEmbedder(load_encoder(run), load_tokenizer(run), sequence_length=128)
    np.testing.assert_allclose(embedder.encode(texts), expected, atol=1e-5)
    for file, least in (("onnx/model.onnx", 0.99999), ("onnx/model_int8.onnx", 0.99)):
        found = labse_tf.load(bilstm_model / file).encode(texts)
        assert (expected * found).sum(axis=1).min() >= least


def test_it_starts_with_a_table_and_goes_on_from_a_model_dir(
    train, static_run, bilstm_model, bilstm_run, tmp_path
):
    assert train(tmp_path / "run", static_run, "train.steps=0") == 0
    table = load_encoder(open_existing(static_run)).get_embedding_table().numpy()
    np.testing.assert_array_equal(weights(tmp_path / "run")[0], table)
    assert train(tmp_path / "more", bilstm_model, "train.steps=0") == 0
    for one, other in zip(weights(tmp_path / "more"), weights(bilstm_run), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_does_not_fit_is_refused(
    train, config_file, static_run, bilstm_run, bilstm_model, tmp_path, capsys
):
    def refused(status, message):
        assert status == 2 and message in capsys.readouterr().err

    out = tmp_path / "out"
    refused(train(out, static_run, "encoder.embedding_size=8"), "--set encoder.embedding_size=16")
    only_bert = "encoder.num_layers=2: only BERT is stacked"
    refused(train(out, bilstm_run, "encoder.num_layers=4"), only_bert)
    for lacking in ("hf", "lite"):
        status = labse("export", bilstm_run, "--format", f"hub,{lacking}", "--out", out)
        refused(status, f"an LSTM cannot be written in the format {lacking}")
    # A Transformer as wide is no student of it.
    command = ("distill", config_file, "--teacher", bilstm_model, "--run-dir", out)
    refused(labse(*command, "--set", "encoder.hidden_size=24"), "the teacher is a bilstm")


# `labse train-laser`.


@pytest.fixture(scope="module")
def train_laser(config_file, bitext_dir):
    def run(run_dir, *sets):
        changes = [f"--set={one}" for one in (*LASER, f"laser.bitext=[{bitext_dir}]", *sets)]
        return labse("train-laser", config_file, "--run-dir", run_dir, *changes)

    return run


@pytest.fixture(scope="module")
def options(bitext_dir):
    """Those of `laser_run`."""
    held_out = (f"laser.held_out=[{bitext_dir}]", "laser.held_out_interval=2")
    return ("laser.steps=4", "laser.sampled_softmax=20", *held_out)


@pytest.fixture(scope="module")
def laser_run(train_laser, options, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("laser") / "run"
    assert train_laser(run_dir, *options) == 0
    return run_dir


def measured(run_dir):
    lines = map(json.loads, (run_dir / "metrics.jsonl").read_text("utf-8").splitlines())
    return [line["held_out"]["translation"] for line in lines if "held_out" in line]


def test_held_out_loss_by_pair(laser_run):
    first, last = measured(laser_run)
    assert set(last["by_pair"]) == {"ar-en", "de-en", "en-de", "fr-en", "ja-en", "ru-en", "th-en"}
    assert last["tokens"] == sum(one["tokens"] for one in last["by_pair"].values())
    total = sum(one["tokens"] * one["loss"] for one in last["by_pair"].values())
    assert math.isclose(last["loss"], total / last["tokens"], rel_tol=1e-6)
    assert math.isclose(last["perplexity"], math.exp(last["loss"]), rel_tol=1e-6)
    assert last["loss"] < first["loss"]
    best = json.loads((laser_run / "checkpoints" / "best" / "best.json").read_text("utf-8"))
    assert (best["step"], best["task"]) == (4, "translation")


@pytest.mark.slow
def test_a_stopped_run_has_the_samples_of_its_steps(train_laser, laser_run, options, tmp_path):
    """As a kill after step 2 leaves it."""
    run_dir = tmp_path / "run"
    shutil.copytree(laser_run, run_dir)
    for file in (run_dir / "checkpoints").glob("ckpt-4*"):
        file.unlink()
    assert train_laser(run_dir, *options) == 0
    one, other = (
        tf.train.load_checkpoint(str(folder / "checkpoints" / "ckpt-4"))
        for folder in (run_dir, laser_run)
    )
    names = [name for name in one.get_variable_to_shape_map() if "VARIABLE_VALUE" in name]
    assert any("decoder" in name for name in names) and any("encoder" in name for name in names)
    for name in names:
        np.testing.assert_array_equal(one.get_tensor(name), other.get_tensor(name))


@pytest.mark.slow
def test_the_exported_encoder_and_its_facts(laser_run, tmp_path):
    """A model dir by the interface."""
    out = tmp_path / "model"
    assert labse("export", laser_run, "--out", out, "--format", "hub,text") == 0
    facts = json.loads((out / "model.json").read_text("utf-8"))["training"]
    found = [facts[name] for name in ("kind", "targets", "batch_size")]
    assert found == ["translation", ["en", "de"], 512]
    card = (out / "README.md").read_text("utf-8")
    assert "512 tokens, translated from their vectors into English (en) or German (de)" in card


@pytest.mark.slow
def test_a_transformer_can_be_the_encoder(train_laser, tmp_path):
    """Of its vectors, only the direction counts."""
    sets = ("encoder.network=bert", "encoder.embedding_size=0", "encoder.hidden_size=16")
    assert train_laser(tmp_path / "run", *sets, "laser.steps=2") == 0
    run = open_existing(tmp_path / "run")
    decoder = build_decoder(run.read_config(LaserRun), load_encoder(run))
    vectors, start = tf.random.stateless_normal([3, 16], [1, 2]), tf.zeros([3], tf.int32)
    read = [decoder((scale * vectors, start, tf.ones([3, 4], tf.int32))) for scale in (1, 9)]
    np.testing.assert_allclose(*read, atol=1e-6)


@pytest.mark.slow
def test_it_learns_by_heart_and_the_language_chooses_the_output(train_laser, tmp_path, bitext_dir):
    """48 sentences of 7 languages: the decoder spells them from their vectors alone."""
    german = tmp_path / "german"
    german.mkdir()
    for code in ("ja", "th"):
        pairs = zip(sentences_of("de"), sentences_of(code), strict=True)
        write_lines(german / f"{code}.tsv", map("\t".join, pairs))
    changes = [f"laser.target_bitext=[de={german}]", "laser.held_out_interval=450"]
    changes += ["laser.steps=450", "laser.loop.log_interval=100"]
    changes += ["laser.loop.checkpoint_interval=450", f"laser.held_out=[{bitext_dir}]"]
    assert train_laser(tmp_path / "run", *changes) == 0
    (found,) = measured(tmp_path / "run")
    assert found["accuracy"] > 0.98
    translators = {beam: open_translator(tmp_path / "run", beam_size=beam) for beam in (1, 3)}
    for source, target in (("ja", "en"), ("ja", "de"), ("th", "en"), ("th", "de"), ("en", "de")):
        beam = 1 if source == "th" else 3
        found = translators[beam].translate(sentences_of(source), target)
        # The tiny vocabulary's pieces are characters: spaces are between words all the same.
        right = [one == other for one, other in zip(found, sentences_of(target), strict=True)]
        assert sum(right) >= 46


def test_the_command_translates(laser_run, static_run, tmp_path, capsys):
    texts, out = tmp_path / "ja.txt", tmp_path / "en.txt"
    write_lines(texts, ["猫と家。", "", "犬と家。"])

    def translate(run, language, *options):
        return labse("translate", run, texts, "--beam", 2, "--out", out, "--to", language, *options)

    assert translate(laser_run, "en") == 0
    lines = out.read_text("utf-8").split("\n")
    assert len(lines) == 4 and lines[1] == lines[3] == ""
    assert translate(laser_run, "en") == 2  # It is there.
    assert translate(laser_run, "fr", "--overwrite") == 2
    assert "does not translate into fr; choose from en, de" in capsys.readouterr().err
    assert translate(static_run, "en", "--overwrite") == 2
    assert "the run trained no translator" in capsys.readouterr().err


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
def test_bad_settings_are_refused(train_laser, tmp_path, change, message, capsys):
    assert train_laser(tmp_path / "run", change) == 2
    assert re.search(message, capsys.readouterr().err)
