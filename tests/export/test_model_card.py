"""The model card: what it tells to do is done here."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import yaml

import labse_tf
from export.model_card import model_card
from labse_tf.cli.main import main

_TEXTS = ["Hello", "Hallo"]


def blocks_of(card):
    return re.findall(r"```python\n(.*?)```", card, re.DOTALL)


@pytest.fixture(scope="module")
def every_format(model_dir, tmp_path_factory):
    out = tmp_path_factory.mktemp("every_format") / "model"
    options = ("--format", "hub,text,hf,lite,onnx", "--no-verify")
    assert main(["export", str(model_dir), "--out", str(out), *options]) == 0
    return out


def test_its_code_runs(every_format, model_dir, monkeypatch):
    monkeypatch.chdir(every_format)
    expected = labse_tf.load(model_dir).encode(_TEXTS)
    names, ran = {}, 0
    for block in blocks_of((every_format / "README.md").read_text("utf-8")):
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
def test_it_tells_of_what_is_there_alone(model_dir, formats, expected):
    facts = json.loads((model_dir / "model.json").read_text("utf-8"))
    code = "".join(blocks_of(model_card({**facts, "formats": formats}, parameters=1)))
    assert set(re.findall(r'(?:Layer|load|Interpreter|Session)\("([\w./]+)"', code)) == expected


def hub_reads(card):
    _, front, rest = card.split("---\n", 2)
    assert rest.lstrip().startswith("# A sentence encoder")
    return yaml.safe_load(front)


def test_what_the_hub_reads(trained_run, tmp_path):
    """Languages, licence, library, and a result as its own `model-index` has it."""
    record = tmp_path / "tatoeba.json"
    facts = {"primary_metric": "accuracy", "accuracy": 0.58712, "encoder": {}, "versions": {}}
    data = {"path": "/data/tatoeba/", "files": 2, "sha256": "0"}
    more = {"directions": [], "settings": {}, "date": "2026-01-01", "task": "tatoeba"}
    record.write_text(json.dumps({**facts, **more, "data": data}), "utf-8")
    options = ["--format", "hf", "--licence", "CC-BY-4.0", "--results", str(record)]
    arguments = ["export", str(trained_run), *options, "--out", str(tmp_path / "model")]
    assert main([*arguments, "--no-verify"]) == 0
    found = hub_reads((tmp_path / "model" / "README.md").read_text("utf-8"))
    languages = json.loads((tmp_path / "model" / "model.json").read_text("utf-8"))["languages"]
    assert found["language"] == sorted(languages)
    assert found["license"] == "cc-by-4.0" and found["library_name"] == "sentence-transformers"
    assert found["pipeline_tag"] == "sentence-similarity"
    [result] = found["model-index"][0]["results"]
    assert result["metrics"] == [{"type": "accuracy", "value": 58.71}]
    assert result["task"] == {"type": "BitextMining", "name": "tatoeba"}
    assert result["dataset"] == {"type": "tatoeba", "name": "tatoeba"}


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        (None, {}),
        ("Apache-2.0", {"license": "apache-2.0"}),
        ("our own", {"license": "other", "license_name": "our own"}),
    ],
)
def test_licences(model_dir, licence, expected):
    facts = json.loads((model_dir / "model.json").read_text("utf-8"))
    found = hub_reads(model_card({**facts, "licence": licence}, parameters=1))
    assert {key: found[key] for key in found if key.startswith("license")} == expected


def test_what_is_no_result(trained_run, tmp_path, capsys):
    (tmp_path / "x.json").write_text("{}", "utf-8")
    command = ["export", str(trained_run), "--results", str(tmp_path / "x.json")]
    assert main([*command, "--out", str(tmp_path / "model")]) == 2
    assert "is not a record of a task" in capsys.readouterr().err


def test_any_language_has_a_name(model_dir):
    facts = json.loads((model_dir / "model.json").read_text("utf-8"))
    assert "Morisyen (mfe)" in model_card({**facts, "languages": ["en", "mfe"]}, parameters=1)
