"""`labse verify`: a model dir of ours passes every check, and each check can fail.

The SavedModels are checked where nothing of this repository can be imported.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import hashed_encoders
import numpy as np
import onnx
import pytest
import tensorflow as tf
import tf_keras
from command_line import refused, run
from safetensors.numpy import load_file, save_file

from export import verification
from export.source import open_source
from labse_tf.errors import InputError

CHECKS = """no absolute path, loaders agree, preprocessor call, tokenize, bert pack inputs,
within tf data, encoder call, any length, signatures, assets, text encoder, training graph, dropout,
fine tuning, saved again"""
FORMAT_CHECKS = """onnx model.onnx, onnx model_int8.onnx, onnx tokens, lite encoder_int8.tflite,
huggingface weights, huggingface tokens"""
CHECKS, FORMAT_CHECKS = (" ".join(s.split()).split(", ") for s in (CHECKS, FORMAT_CHECKS))
SAVED_MODELS = ("encoder", "preprocessor", "text_encoder")


@pytest.fixture
def copied(every_format, tmp_path):
    """The SavedModels alone."""
    others = shutil.ignore_patterns("onnx", "lite", "config.json")
    return Path(shutil.copytree(every_format, tmp_path / "copy", ignore=others))


@pytest.fixture
def without_saved_models(every_format, tmp_path):
    names = shutil.ignore_patterns(*SAVED_MODELS)
    folder = Path(shutil.copytree(every_format, tmp_path / "copy", ignore=names))
    change_json(folder / "model.json", formats=["hf", "lite", "onnx"])
    return folder


def change_json(file, **changes):
    content = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(content | changes), "utf-8")


def negate(file, name):
    save_file({key: -v if key == name else v for key, v in load_file(file).items()}, file)


def failed_checks(model_dir):
    """Returns the detail of each check that fails, by name."""
    checks = []
    with pytest.raises(InputError, match=r"\d of \d+ checks failed"):
        verification.verify(model_dir, checks.append)
    return {check.name: check.detail for check in checks if not check.ok}


def test_a_model_dir_of_every_format_passes(every_format, capsys):
    status, out, _ = run(capsys, "verify", every_format)
    lines = out.splitlines()
    assert status == 0 and all(line.startswith("ok ") for line in lines)
    assert [line[8:36].strip() for line in lines] == [*CHECKS, *FORMAT_CHECKS]
    details = dict(zip(CHECKS, (line[36:] for line in lines), strict=False))
    assert details["any length"] == "1, 2, 7, 64, 128; a batch of 1000"
    assert details["fine tuning"].startswith("23 weights")
    assert details["training graph"].startswith("18 sentences")


@pytest.mark.slow
def test_what_model_json_and_the_vectors_say_is_checked(copied):
    """The graphs are right, everything that is told of them is wrong."""
    facts = json.loads((copied / "model.json").read_text("utf-8"))
    facts["encoder"]["num_layers"] += 1
    facts["sequence_length"] -= 1
    facts["vocabulary"]["tokens"] += 1
    change_json(copied / "model.json", **facts, source="/home/someone/runs/dual")
    vectors = np.load(copied / "verification" / "vectors.npy")
    np.save(copied / "verification" / "vectors.npy", vectors + 1e-4)
    failed = failed_checks(copied)
    told = ("preprocessor call", "tokenize", "encoder call", "assets", "fine tuning")
    assert set(failed) == {"no absolute path", "training graph", *told}
    assert "/home/someone/runs/dual" in failed["no absolute path"]
    # 1e-4 in each of 16 columns of unit vectors.
    assert "4.0e-04" in failed["training graph"]


@pytest.mark.slow
def test_other_graphs_fail(copied, shallow_run, vocab_file):
    """An encoder that normalises, has a frozen weight, and has no named signature."""
    encoder = open_source(shallow_run).encoder
    inputs = {name: tf_keras.Input((None,), dtype=tf.int32, name=name) for name in encoder.inputs}
    outputs = encoder(inputs)
    outputs["default"] = tf.math.l2_normalize(outputs["pooled_output"], axis=1)
    encoder.get_embedding_layer().trainable = False
    model = tf_keras.Model(inputs, outputs)
    model.vocab_file = tf.saved_model.Asset(str(vocab_file))
    model.do_lower_case = tf.Variable(True, trainable=False)
    shutil.rmtree(copied / "encoder")
    model.save(copied / "encoder", include_optimizer=False, save_format="tf")
    shutil.rmtree(copied / "text_encoder")
    shutil.copytree(copied / "preprocessor", copied / "text_encoder")
    failed = failed_checks(copied)
    assert set(failed) == {"encoder call", "signatures", "assets", "text encoder", "fine tuning"}
    for name, word in (("encoder call", "default"), ("assets", "do_lower"), ("fine tuning", "22")):
        assert word in failed[name]


def test_wrong_files_of_other_formats(without_saved_models):
    folder = without_saved_models
    negate(folder / "model.safetensors", "encoder.layer.0.output.dense.weight")
    lines = (folder / "vocab.txt").read_text("utf-8").splitlines()
    lines[104:] = [*lines[105:], lines[104]]
    (folder / "vocab.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    model = onnx.load(folder / "onnx" / "model.onnx")
    for weight in model.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT and len(weight.dims) == 2:
            values = onnx.numpy_helper.to_array(weight)
            noise = np.random.default_rng(0).normal(0, values.std(), values.shape)
            new = (values + noise).astype(np.float32)
            weight.CopyFrom(onnx.numpy_helper.from_array(new, weight.name))
    onnx.save(model, folder / "onnx" / "model.onnx")
    (folder / "lite" / "encoder_int8.tflite").write_bytes(b"nothing")
    failed = failed_checks(folder)
    assert set(failed) == set(FORMAT_CHECKS) - {"onnx model_int8.onnx", "onnx tokens"}


def test_wrong_modules_and_a_runtime_that_crashes(without_saved_models, monkeypatch):
    """The files after a crash are checked."""
    change_json(without_saved_models / "1_Pooling" / "config.json", pooling_mode_mean_tokens=True)
    monkeypatch.setattr(verification, "_run_encoder", hashed_encoders.crash)
    failed = failed_checks(without_saved_models)
    assert set(failed) == set(FORMAT_CHECKS) - {"onnx tokens", "huggingface tokens"}


def test_a_wrong_dense_layer(without_saved_models):
    negate(without_saved_models / "2_Dense" / "model.safetensors", "linear.weight")
    shutil.rmtree(without_saved_models / "onnx")
    shutil.rmtree(without_saved_models / "lite")
    assert set(failed_checks(without_saved_models)) == {"huggingface weights"}


@pytest.mark.parametrize(
    "part", ["preprocessor", "encoder", pytest.param("a graph", marks=pytest.mark.slow)]
)
def test_no_model_dir(copied, part, capsys):
    if part == "a graph":
        (copied / "encoder" / "saved_model.pb").write_bytes(b"no graph")
    else:
        shutil.rmtree(copied / part)
    error = refused(capsys, "verify", copied)
    problem = "cannot be loaded (" if part == "a graph" else f"{part}/saved_model.pb"
    assert error.startswith(f"{copied}: ") and problem in error
