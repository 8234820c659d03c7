"""Runs of an encoder without layers, and of layers on top of it."""

from __future__ import annotations

import numpy as np
import pytest

from labse_tf.cli.main import main
from labse_tf.training.run_embedder import RunEmbedder
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing


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


def test_pretraining_does_not_start_from_it(static_run, config_file, tmp_path, capsys):
    command = ["pretrain", str(config_file), "--init", str(static_run)]
    more = ["--set", "encoder.pooling=mean", "--run-dir", str(tmp_path / "run")]
    assert main([*command, *more]) == 2
    assert "has no layers" in capsys.readouterr().err


def test_pretraining_needs_layers(config_file, tmp_path, capsys):
    sets = ("--set", "encoder.num_layers=0", "--set", "pretrain.stage_steps=[2]")
    assert main(["pretrain", str(config_file), *sets, "--run-dir", str(tmp_path / "run")]) == 2
    assert "there is no layer to pre-train" in capsys.readouterr().err


def test_deeper_does_not_become_shallower(trained_run, config_file, tmp_path, capsys):
    assert train(config_file, trained_run, tmp_path / "run", "encoder.num_layers=0") == 2
    assert "'encoder.pooling' is mean" in capsys.readouterr().err
