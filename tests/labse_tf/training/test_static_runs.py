"""Runs of an encoder without layers, and of layers on top of it."""

from __future__ import annotations

import numpy as np
import pytest
from runs import embedder_of, labse_run, lines

from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.run_dir import open_existing
from vocab.basic_tokenizer import split_words

MEAN, NO_STEPS = "encoder.pooling=mean", "train.steps=0"


@pytest.fixture
def train(config_file, static_run, tmp_path):
    def run(name, *sets, origin=static_run):
        code = labse_run("train", config_file, tmp_path / name, *sets, init=origin)
        return tmp_path / name if code == 0 else code

    return run


@pytest.fixture
def assert_same_vectors(static_run, multilingual_sentences):
    def check(found, expected=static_run, atol=1e-5):
        vectors = (embedder_of(run).encode(multilingual_sentences) for run in (found, expected))
        np.testing.assert_allclose(*vectors, atol=atol)

    return check


def test_it_learns_and_layers_on_top_begin_with_its_vectors(static_run, train, assert_same_vectors):
    losses = [line["loss"] for line in lines(static_run, "loss")]
    assert losses[-1] < losses[0] / 2
    assert open_existing(static_run).config.encoder.pooling == "mean"
    assert_same_vectors(train("deep", MEAN, NO_STEPS))


@pytest.mark.parametrize("layers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_another_vocabulary(
    static_run, train, assert_same_vectors, tmp_path, multilingual_sentences, layers
):
    """Its additional words are sums of pieces, so that sentences keep their vectors."""
    old = open_existing(static_run).vocab_file.read_text("utf-8").splitlines()
    words = {word for text in multilingual_sentences for word in split_words(text)}
    new = [*old, *sorted(words - set(old))]
    assert len(new) > len(old) + 20
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in new), "utf-8")
    sets = (f"tokenizer.vocab_file={tmp_path / 'vocab.txt'}", f"encoder.num_layers={layers}")
    grown = train("grown", *sets, "encoder.vocab_size=0", MEAN, NO_STEPS)
    run_dir = open_existing(grown)
    assert run_dir.config.encoder.vocab_size == len(new) == len(load_tokenizer(run_dir).tokens)
    assert_same_vectors(grown)


def test_refusals(train, config_file, static_run, trained_run, tmp_path, capsys):
    for origin, sets, message in (
        (static_run, (), "'encoder.pooling' is cls"),
        (static_run, (MEAN, "encoder.hidden_size=32"), "'encoder.hidden_size' is 32"),
        (static_run, (MEAN, "encoder.subwords=[3]"), "'encoder.subwords' is [3]"),
        (trained_run, ("encoder.num_layers=0",), "'encoder.pooling' is mean"),
    ):
        assert train("run", *sets, origin=origin) == 2
        assert message in capsys.readouterr().err
    sets = ("encoder.num_layers=0", "pretrain.stage_steps=[2]")
    assert labse_run("pretrain", config_file, tmp_path / "run", *sets) == 2
    assert "there is no layer to pre-train" in capsys.readouterr().err


@pytest.mark.slow
def test_pretraining_starts_on_the_table(static_run, config_file, tmp_path, assert_same_vectors):
    """Before the first step, the vectors are the table's averages."""
    sets = (MEAN, "pretrain.stage_steps=[0]", "encoder.vocab_size=0")
    assert labse_run("pretrain", config_file, tmp_path / "run", *sets, init=static_run) == 0
    assert_same_vectors(tmp_path / "run")
    assert labse_run("pretrain", config_file, tmp_path / "more", MEAN, init=static_run) == 0


@pytest.mark.slow
def test_subwords(static_run, train, assert_same_vectors, multilingual_sentences):
    """They start with the vectors of another run, and what is loaded are sums of trained rows."""
    sets = ("encoder.num_layers=0", MEAN, "encoder.subwords=[1,3]", "encoder.ngrams=[2]")
    assert_same_vectors(train("start", *sets, NO_STEPS), atol=1e-6)
    more = train("more", *sets, "train.steps=8", "train.optimizer.learning_rate=0.1")
    before, after = (embedder_of(run).encode(multilingual_sentences) for run in (static_run, more))
    assert np.abs(after - before).max() > 0.01
    assert_same_vectors(train("deep", "encoder.num_layers=2", MEAN, NO_STEPS, origin=more), more)
