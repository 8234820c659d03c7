"""A run of LASER's encoder, from a table and from scratch: trained, resumed, exported, used."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import labse_tf
from labse_tf.cli.main import main
from labse_tf.training.runs.checkpoints import load_encoder
from labse_tf.training.runs.run_dir import open_existing

SIZES = ("encoder.network=bilstm", "encoder.embedding_size=16", "encoder.hidden_size=24")
FORMATS = "hub,text,onnx"


def train(config_file, run_dir, *options, sets=()):
    changes = [f"--set={one}" for one in (*SIZES, "train.optimizer.learning_rate=0.01", *sets)]
    return main(["train", str(config_file), "--run-dir", str(run_dir), *changes, *options])


def weights(run_dir):
    return [variable.numpy() for variable in load_encoder(open_existing(run_dir)).variables]


@pytest.fixture(scope="module")
def bilstm_run(config_file, static_run, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("bilstm") / "run"
    assert train(config_file, run_dir, "--init", str(static_run), sets=["encoder.dropout=0.1"]) == 0
    return run_dir


@pytest.fixture(scope="module")
def bilstm_model(bilstm_run):
    """Checked by `labse verify`."""
    out = bilstm_run.parent / "model"
    assert main(["export", str(bilstm_run), "--format", FORMATS, "--out", str(out)]) == 0
    return out


def test_it_starts_with_the_table(config_file, static_run, tmp_path):
    run_dir = tmp_path / "run"
    assert train(config_file, run_dir, "--init", str(static_run), sets=["train.steps=0"]) == 0
    table = load_encoder(open_existing(static_run)).get_embedding_table().numpy()
    np.testing.assert_array_equal(weights(run_dir)[0], table)


def test_a_stopped_run_ends_with_the_same_weights(config_file, static_run, bilstm_run, tmp_path):
    """With dropout between the layers; from the checkpoint of step 2, as after a kill."""
    run_dir = tmp_path / "run"
    shutil.copytree(bilstm_run, run_dir)
    for file in (run_dir / "checkpoints").glob("ckpt-4*"):
        file.unlink()
    dropout = ["encoder.dropout=0.1"]
    assert train(config_file, run_dir, "--init", str(static_run), sets=dropout) == 0
    for one, other in zip(weights(run_dir), weights(bilstm_run), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_model_dir(bilstm_model):
    facts = json.loads((bilstm_model / "model.json").read_text("utf-8"))
    assert (facts["encoder"]["network"], facts["encoder"]["pooling"]) == ("bilstm", "max")
    card = (bilstm_model / "README.md").read_text("utf-8")
    assert "bidirectional LSTM, 2 layers, 24 wide, the maximum over tokens" in card


@pytest.mark.parametrize(
    ("file", "least"),
    [("onnx/model.onnx", 0.99999), ("onnx/model_int8.onnx", 0.99)],
)
def test_other_runtimes_give_its_vectors(bilstm_model, file, least, multilingual_sentences):
    texts = [*multilingual_sentences, "", "แมว " * 30]
    expected = labse_tf.load(bilstm_model).encode(texts)
    found = labse_tf.load(bilstm_model / file).encode(texts)
    assert (expected * found).sum(axis=1).min() >= least


def test_training_goes_on_from_the_model_dir(config_file, bilstm_model, bilstm_run, tmp_path):
    run_dir = tmp_path / "run"
    assert train(config_file, run_dir, "--init", str(bilstm_model), sets=["train.steps=0"]) == 0
    for one, other in zip(weights(run_dir), weights(bilstm_run), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_transformer_as_wide_is_no_student_of_it(bilstm_model, config_file, tmp_path, capsys):
    command = ["distill", str(config_file), "--teacher", str(bilstm_model), "--run-dir"]
    assert main([*command, str(tmp_path / "run"), "--set", "encoder.hidden_size=24"]) == 2
    assert "the teacher is a bilstm" in capsys.readouterr().err


def test_what_does_not_fit_is_refused(config_file, static_run, bilstm_run, tmp_path, capsys):
    out = str(tmp_path / "out")
    wide = ["encoder.embedding_size=8"]
    assert train(config_file, out, "--init", str(static_run), sets=wide) == 2
    assert "--set encoder.embedding_size=16" in capsys.readouterr().err
    assert train(config_file, out, "--init", str(bilstm_run), sets=["encoder.num_layers=4"]) == 2
    assert "encoder.num_layers=2: only BERT is stacked" in capsys.readouterr().err
    for lacking in ("hf", "lite"):
        assert main(["export", str(bilstm_run), "--format", f"hub,{lacking}", "--out", out]) == 2
        assert f"an LSTM cannot be written in the format {lacking}" in capsys.readouterr().err
