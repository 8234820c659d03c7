"""The model card: what it tells to do is done here."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

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
