"""`labse verify` of Hugging Face's, ONNX's and LiteRT's files: each passes, and each can fail."""

from __future__ import annotations

import json
import shutil

import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file, save_file

from export.verification import SENTENCES, verify
from labse_tf.cli.main import main
from labse_tf.errors import InputError

ALL = [
    "onnx model.onnx",
    "onnx model_int8.onnx",
    "onnx tokens",
    "lite encoder_int8.tflite",
    "huggingface weights",
    "huggingface tokens",
]


@pytest.fixture(scope="module")
def exported(trained_run, made_once):
    """A model dir of all formats but the SavedModels."""

    def make(folder):
        arguments = ["export", str(trained_run), "--format", "hf,onnx,lite", "--no-verify"]
        assert main([*arguments, "--out", str(folder)]) == 0

    return made_once("other_formats", make)


@pytest.fixture
def copied(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "copy")


def results_of(model_dir):
    checks = []
    try:
        verify(model_dir, checks.append)
    except InputError:
        assert not all(check.ok for check in checks)
    return {check.name: check.ok for check in checks}


def test_all_pass(exported, capsys):
    assert main(["verify", str(exported)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[8:].split("  ")[0] for line in lines] == ALL
    assert f"the ids of {len(SENTENCES)} sentences" in lines[-1]


def test_wrong_weights_of_huggingface(copied):
    tensors = load_file(copied / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    save_file({**tensors, name: -tensors[name]}, copied / "model.safetensors")
    assert results_of(copied) == {name: name != "huggingface weights" for name in ALL}


@pytest.mark.parametrize("part", ["1_Pooling", "2_Dense"])
def test_wrong_modules_of_sentence_transformers(copied, part):
    file = copied / part / "config.json"
    config = json.loads(file.read_text("utf-8"))
    if part == "1_Pooling":
        config["pooling_mode_mean_tokens"] = not config["pooling_mode_mean_tokens"]
    else:
        config["activation_function"] = "torch.nn.modules.linear.Identity"
        weights = load_file(copied / part / "model.safetensors")
        weights["linear.bias"] = weights["linear.bias"] + 1
        save_file(weights, copied / part / "model.safetensors")
    file.write_text(json.dumps(config), "utf-8")
    assert not results_of(copied)["huggingface weights"]


def test_another_order_of_the_vocabulary(copied):
    lines = (copied / "vocab.txt").read_text("utf-8").splitlines()
    lines[104:] = [*lines[105:], lines[104]]
    (copied / "vocab.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    assert results_of(copied) == {name: name != "huggingface tokens" for name in ALL}


def test_wrong_onnx(copied):
    file = copied / "onnx" / "model.onnx"
    model = onnx.load(file)
    for weight in model.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2:
            values = onnx.numpy_helper.to_array(weight)
            noise = np.random.default_rng(0).normal(0, values.std(), values.shape)
            new = (values + noise).astype(np.float32)
            weight.CopyFrom(onnx.numpy_helper.from_array(new, weight.name))
    onnx.save(model, file)
    assert results_of(copied) == {name: name != "onnx model.onnx" for name in ALL}


def test_a_file_that_cannot_be_read(copied, capsys):
    (copied / "lite" / "encoder_int8.tflite").write_bytes(b"nothing")
    assert main(["verify", str(copied)]) == 2
    captured = capsys.readouterr()
    assert "FAILED  lite encoder_int8.tflite" in captured.out
    assert "1 of 6 checks failed" in captured.err


def test_an_encoder_without_layers(static_run, tmp_path):
    arguments = ["export", str(static_run), "--format", "hf,onnx", "--out", str(tmp_path / "model")]
    assert main(arguments) == 0  # It verifies what it wrote.
    names = ["onnx model.onnx", "onnx model_int8.onnx", "onnx tokens", "huggingface weights"]
    assert results_of(tmp_path / "model") == dict.fromkeys(names, True)
