"""model.json and the model card: what they tell of each kind of model, and the card's code."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import tensorflow as tf
import yaml

import labse_tf
from export.model_card import model_card
from labse_tf.cli.main import main

TEXTS = ["Hello", "Hallo"]


def read_facts(folder):
    return json.loads((folder / "model.json").read_text("utf-8"))


def read_card(folder):
    return (folder / "README.md").read_text("utf-8")


def code_of(card):
    return re.findall(r"```python\n(.*?)```", card, re.DOTALL)


def export(source, out, *more):
    options = ("--no-verify", "--format", "hub", *more)
    assert main(["export", str(source), "--out", str(out), *options]) == 0
    return read_facts(out), read_card(out)


@pytest.fixture(scope="module")
def facts(model_dir):
    return read_facts(model_dir)


def test_a_dual_encoder(model_dir, facts, vocab_file):
    training = facts["training"]
    assert (training["kind"], training["steps"]) == ("dual encoder", 4)
    assert training["bitext"] == ["bitext"] and "matryoshka" not in training
    card = read_card(model_dir)
    assert "4 steps of 8 pairs, additive margin softmax with margin 0.3 and scale 10.0" in card
    assert "Data: bitext." in card and "columns" not in card
    parts = {"preprocessor", "encoder", "text_encoder"}
    names = {path.name for path in model_dir.iterdir()}
    assert names == parts | {"verification", "model.json", "README.md"}
    for part in parts:
        assert (model_dir / part / "assets" / "vocab.txt").read_bytes() == vocab_file.read_bytes()


def test_the_code_of_the_card_runs(every_format, model_dir, monkeypatch):
    monkeypatch.chdir(every_format)
    expected = labse_tf.load(model_dir).encode(TEXTS)
    names, ran = {}, 0
    for block in code_of(read_card(every_format)):
        # It is no requirement of ours; benchmarks/models/huggingface.py runs it.
        if "sentence_transformers" not in block:
            exec(block, names)
            ran += 1
            vectors = np.asarray(names.pop("vectors"))
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            assert (vectors * expected).sum(axis=1).min() > 0.99, block
    assert ran == 4


@pytest.mark.parametrize(
    ("formats", "expected"),
    [
        (["hub"], {"preprocessor", "encoder"}),
        (["text"], {"text_encoder"}),
        (["hub", "lite"], {"preprocessor", "encoder", "lite/encoder_int8.tflite"}),
        (["onnx"], {"onnx/model_int8.onnx"}),
    ],
)
def test_a_card_tells_of_its_formats_alone(facts, formats, expected):
    code = "".join(code_of(model_card({**facts, "formats": formats}, parameters=1)))
    assert set(re.findall(r'(?:Layer|load|Interpreter|Session)\("([\w./]+)"', code)) == expected


LIBRARY = "sentence-transformers"
TAGS = [LIBRARY, "feature-extraction", "sentence-similarity", "bitext-mining", "LaBSE"]


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        (None, {}),
        ("Apache-2.0", {"license": "apache-2.0"}),
        ("our own", {"license": "other", "license_name": "our own"}),
    ],
)
def test_what_the_hub_reads(facts, licence, expected):
    result = {"task": "tatoeba", "primary_metric": "accuracy", "accuracy": 0.58712}
    result["data"] = {"path": "/data/tatoeba/"}
    changed = {"licence": licence, "formats": ["hf"], "languages": ["mfe", "en"]}
    card = model_card({**facts, **changed}, parameters=1, results=[result])
    assert "Morisyen (mfe)" in card
    _, front, rest = card.split("---\n", 2)
    assert rest.lstrip().startswith("# A sentence encoder")
    entry = {
        "task": {"type": "BitextMining", "name": "tatoeba"},
        "dataset": {"type": "tatoeba", "name": "tatoeba"},
        "metrics": [{"type": "accuracy", "value": 58.71}],
    }
    expected |= {"language": ["en", "mfe"], "library_name": LIBRARY, "tags": TAGS}
    expected |= {"model-index": [{"name": "labse_tf", "results": [entry]}]}
    assert yaml.safe_load(front) == expected | {"pipeline_tag": "sentence-similarity"}


def test_results_that_are_no_record(trained_run, tmp_path, capsys):
    (tmp_path / "x.json").write_text("{}", "utf-8")
    command = ["export", str(trained_run), "--results", str(tmp_path / "x.json")]
    assert main([*command, "--out", str(tmp_path / "model")]) == 2
    assert f"{tmp_path / 'x.json'}: is not a record of a task" in capsys.readouterr().err


@pytest.mark.slow
def test_leading_columns(config_file, static_run, tmp_path):
    """They are told if they were trained; and stay so when the model is exported again."""
    for dims, expected in (("[8,4]", [16, 8, 4]), ("[16]", None)):
        run, out = tmp_path / f"run_{len(dims)}", tmp_path / f"model_{len(dims)}"
        sets = ("encoder.num_layers=0", "encoder.pooling=mean", "train.steps=2")
        options = [word for one in (*sets, f"train.matryoshka={dims}") for word in ("--set", one)]
        command = ["train", str(config_file), "--init", str(static_run), "--run-dir", str(run)]
        assert main([*command, *options]) == 0
        facts, card = export(run, out)
        assert facts["training"].get("matryoshka") == expected
        assert ("vectors have 16 dimensions" in card) == bool(expected)
    facts, card = export(tmp_path / "model_5", tmp_path / "again")
    assert facts["training"]["matryoshka"] == [16, 8, 4]
    assert "their first 8 or 4 columns" in card and "[:, :4], 1)`" in card


def mlm_logits(folder):
    ids = tf.constant([[101, 110, 103, 112, 102]])
    inputs = {"input_word_ids": ids, "input_mask": ids * 0 + 1, "input_type_ids": ids * 0}
    inputs["masked_lm_positions"] = tf.constant([[2, 0]])
    encoder = tf.saved_model.load(str(folder / "encoder"))
    outputs = encoder.mlm(inputs)
    names = {"mlm_logits", "pooled_output", "sequence_output", "encoder_outputs"}
    assert set(outputs) == names
    # It is no part of what is trained as the encoder.
    assert not any("mlm_head" in variable.name for variable in encoder.trainable_variables)
    return outputs["mlm_logits"].numpy()


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_pretrained_encoder_has_its_masked_language_model(pretrained_run, tmp_path, times):
    """An export of the model dir keeps it, and the licence."""
    model = tmp_path / "model"
    facts, card = export(pretrained_run, model, "--licence", "CC BY 4.0")
    logits = mlm_logits(model)
    if times == 2:
        facts, card = export(model, tmp_path / "again", "--length", "32")
        assert facts["sequence_length"] == 32
        np.testing.assert_array_equal(mlm_logits(tmp_path / "again"), logits)
    assert facts["licence"] == "CC BY 4.0" and "CC BY 4.0" in card
    # Two stages of three steps.
    assert (facts["training"]["kind"], facts["training"]["steps"]) == ("pre-training", 6)
    assert "6 steps of 8 sequences of MLM and TLM" in card
    assert "margin" not in card and "Data: monolingual, bitext." in card
    assert logits.shape == (1, 2, facts["encoder"]["vocab_size"])
