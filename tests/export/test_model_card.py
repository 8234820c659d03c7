"""The model card: what it tells to do is done here."""

from __future__ import annotations

import re

import numpy as np
import pytest

import labse_tf
from labse_tf.cli.main import main

_TEXTS = ["Hello", "Hallo"]


def blocks_of(model_dir):
    card = (model_dir / "README.md").read_text("utf-8")
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
    for block in blocks_of(every_format):
        # It is no requirement of ours; benchmarks/huggingface.py runs it.
        if "sentence_transformers" not in block:
            exec(block, names)
            ran += 1
            vectors = np.asarray(names.pop("vectors"))
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            assert (vectors * expected).sum(axis=1).min() > 0.99, block
    assert ran == 4


def test_it_tells_nothing_of_what_is_not_there(model_dir, tmp_path):
    for formats, expected in (("hub", ["preprocessor"]), ("text", ["text_encoder"])):
        out = tmp_path / formats
        options = ("--format", formats, "--no-verify")
        assert main(["export", str(model_dir), "--out", str(out), *options]) == 0
        named = re.findall(r'(?:KerasLayer|load)\("(\w+)"', "".join(blocks_of(out)))
        assert named[:1] == expected and all((out / name).is_dir() for name in named)
