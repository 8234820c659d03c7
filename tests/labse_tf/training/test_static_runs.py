"""Runs of an encoder without layers, and of layers on top of it."""

from __future__ import annotations

import numpy as np
import pytest

from labse_tf.cli.main import main
from labse_tf.training.run_embedder import RunEmbedder
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing
from vocab.basic_tokenizer import split_words


def train(config_file, origin, folder, *sets):
    arguments = [word for one in sets for word in ("--set", one)]
    return main(
        ["train", str(config_file), "--init", str(origin), *arguments, "--run-dir", str(folder)]
    )


def embedder_of(run_dir):
    return RunEmbedder(load_encoder(run_dir), load_tokenizer(run_dir), sequence_length=64)


def test_it_learns(static_run):
    losses = [line["loss"] for line in open_existing(static_run).read_metrics() if "loss" in line]
    assert losses[-1] < losses[0] / 2
    assert open_existing(static_run).config.encoder.pooling == "mean"


def test_layers_on_top_begin_with_its_vectors(
    static_run, config_file, tmp_path, multilingual_sentences
):
    code = train(
        config_file, static_run, tmp_path / "deep", "encoder.pooling=mean", "train.steps=0"
    )
    assert code == 0
    deep, static = (
        embedder_of(open_existing(path)).encode(multilingual_sentences)
        for path in (tmp_path / "deep", static_run)
    )
    np.testing.assert_allclose(deep, static, atol=1e-5)


@pytest.mark.parametrize("layers", [0, 2])
def test_another_vocabulary(static_run, config_file, tmp_path, multilingual_sentences, layers):
    """Its additional words are sums of pieces, so that sentences keep their vectors."""
    old = open_existing(static_run).vocab_file.read_text("utf-8").splitlines()
    words = {word for text in multilingual_sentences for word in split_words(text)}
    new = [*old, *sorted(words - set(old))]
    assert len(new) > len(old) + 20
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in new), "utf-8")
    sets = (f"tokenizer.vocab_file={tmp_path / 'vocab.txt'}", f"encoder.num_layers={layers}")
    more = ("encoder.vocab_size=0", "encoder.pooling=mean", "train.steps=0")
    assert train(config_file, static_run, tmp_path / "grown", *sets, *more) == 0
    run_dir = open_existing(tmp_path / "grown")
    assert run_dir.config.encoder.vocab_size == len(new) == len(load_tokenizer(run_dir).tokens)
    grown, static = (
        embedder_of(one).encode(multilingual_sentences)
        for one in (run_dir, open_existing(static_run))
    )
    np.testing.assert_allclose(grown, static, atol=1e-5)


@pytest.mark.parametrize(
    "sets, message",
    [
        ((), "'encoder.pooling' is cls"),
        (("encoder.pooling=mean", "encoder.hidden_size=32"), "'encoder.hidden_size' is 32"),
    ],
)
def test_refusals(static_run, config_file, tmp_path, capsys, sets, message):
    assert train(config_file, static_run, tmp_path / "deep", *sets) == 2
    assert message in capsys.readouterr().err


def test_pretraining_starts_on_the_table(static_run, config_file, tmp_path, multilingual_sentences):
    """Before the first step, the vectors are the table's averages."""
    command = ["pretrain", str(config_file), "--init", str(static_run)]
    sets = ("encoder.pooling=mean", "pretrain.stage_steps=[0]", "encoder.vocab_size=0")
    options = [word for one in sets for word in ("--set", one)]
    assert main([*command, *options, "--run-dir", str(tmp_path / "run")]) == 0
    found, expected = (
        embedder_of(open_existing(path)).encode(multilingual_sentences)
        for path in (tmp_path / "run", static_run)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)
    more = ["--set", "encoder.pooling=mean", "--run-dir", str(tmp_path / "more")]
    assert main([*command, *more]) == 0


def test_pretraining_needs_layers(config_file, tmp_path, capsys):
    sets = ("--set", "encoder.num_layers=0", "--set", "pretrain.stage_steps=[2]")
    assert main(["pretrain", str(config_file), *sets, "--run-dir", str(tmp_path / "run")]) == 2
    assert "there is no layer to pre-train" in capsys.readouterr().err


def test_deeper_does_not_become_shallower(trained_run, config_file, tmp_path, capsys):
    assert train(config_file, trained_run, tmp_path / "run", "encoder.num_layers=0") == 2
    assert "'encoder.pooling' is mean" in capsys.readouterr().err


def test_subwords(static_run, config_file, tmp_path, multilingual_sentences):
    """They start with the vectors of another run, and what is loaded are sums of trained rows."""
    start = ("encoder.num_layers=0", "encoder.pooling=mean", "encoder.subwords=[1,3]")
    start = (*start, "encoder.ngrams=[2]")
    assert train(config_file, static_run, tmp_path / "start", *start, "train.steps=0") == 0
    rate = "train.optimizer.learning_rate=0.1"
    assert train(config_file, static_run, tmp_path / "more", *start, "train.steps=8", rate) == 0
    deeper = ("encoder.num_layers=2", "encoder.pooling=mean", "train.steps=0")
    assert train(config_file, tmp_path / "more", tmp_path / "deep", *deeper) == 0
    before, start, more, deep = (
        embedder_of(open_existing(path)).encode(multilingual_sentences)
        for path in (static_run, tmp_path / "start", tmp_path / "more", tmp_path / "deep")
    )
    np.testing.assert_allclose(start, before, atol=1e-6)
    assert np.abs(more - before).max() > 0.01
    np.testing.assert_allclose(deep, more, atol=1e-5)


def test_layers_have_no_subwords(static_run, config_file, tmp_path, capsys):
    sets = ("encoder.pooling=mean", "encoder.subwords=[3]")
    assert train(config_file, static_run, tmp_path / "run", *sets) == 2
    assert "'encoder.subwords' is [3]" in capsys.readouterr().err
