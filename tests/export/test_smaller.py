"""Smaller formats: a packed embedding table, LiteRT, ONNX; each against the float32 SavedModel."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401
from ai_edge_litert.interpreter import Interpreter

import labse_tf
from export import lite as export_lite
from export.onnx import save_model
from export.transforms import PackedEmbedding
from labse_tf.cli.main import main
from labse_tf.embedding.model_dir import ModelDir
from labse_tf.embedding.open import open_encoder
from labse_tf.errors import InputError


def packed(dtype, table):
    layer = PackedEmbedding(*table.shape, dtype)
    layer.build(None)
    layer.pack(table)
    return layer


def test_int8_by_hand():
    """The largest value of a row is 127 scales; a row of zeros stays one."""
    table = np.array([[1.27, -0.63, 0.004], [0, 0, 0], [-254, 127, 1]], np.float32)
    layer = packed("int8", table)
    np.testing.assert_array_equal(layer.embeddings, [[127, -63, 0], [0, 0, 0], [-127, 64, 0]])
    np.testing.assert_allclose(layer.scales, [[0.01], [0], [2]], rtol=1e-6)
    found = layer(tf.constant([[2, 0], [1, 1]]))
    assert found.dtype == tf.float32 and found.shape == (2, 2, 3)
    np.testing.assert_allclose(found[0], [[-254, 128, 0], [1.27, -0.63, 0]], rtol=1e-6)


def test_float16_by_hand():
    table = np.array([[0.1, 1 / 3], [1000.3, 0]], np.float32)
    layer = packed("float16", table)
    assert layer.embeddings.dtype == tf.float16
    np.testing.assert_array_equal(layer(tf.constant([0, 1])), table.astype(np.float16))


def export(source, out, *more):
    return main(["export", str(source), "--out", str(out), *more])


def cosines(one, other):
    return (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


@pytest.fixture(scope="module")
def expected(model_dir, multilingual_sentences):
    return labse_tf.load(model_dir).encode(multilingual_sentences)


@pytest.fixture(scope="module")
def int8_model(trained_run, tmp_path_factory):
    """With all checks of `labse verify`, which knows this case."""
    out = tmp_path_factory.mktemp("int8") / "model"
    assert export(trained_run, out, "--table", "int8", "--format", "hub") == 0
    return out


@pytest.mark.slow
def test_a_packed_table(int8_model, expected, multilingual_sentences):
    found = labse_tf.load(int8_model).encode(multilingual_sentences)
    assert cosines(found, expected).min() > 0.999 and (found != expected).any()
    assert json.loads((int8_model / "model.json").read_text("utf-8"))["table"] == "int8"
    encoder = tf.saved_model.load(str(int8_model / "encoder"))
    [embeddings] = [v for v in encoder.variables if "word_embeddings/embeddings" in v.name]
    assert embeddings.dtype == tf.int8
    assert not any("word_embeddings" in v.name for v in encoder.trainable_variables)


def test_a_packed_model_is_no_start(int8_model, tmp_path, capsys):
    assert export(int8_model, tmp_path / "again", "--no-verify") == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "has an embedding table of int8" in error
    assert not (tmp_path / "again").exists()


@pytest.fixture(scope="module")
def smaller(trained_run, tmp_path_factory):
    out = tmp_path_factory.mktemp("smaller") / "model"
    assert export(trained_run, out, "--format", "lite,onnx") == 0
    return out


@pytest.fixture(scope="module")
def inputs(model_dir, multilingual_sentences):
    preprocessor = tf.saved_model.load(str(model_dir / "preprocessor"))
    tokens = preprocessor.tokenize(tf.constant(multilingual_sentences))
    packed = preprocessor.bert_pack_inputs([tokens], seq_length=tf.constant(70))
    return {name: ids.numpy() for name, ids in packed.items()}


@pytest.mark.slow
def test_lite(smaller, inputs, expected):
    run = Interpreter(str(smaller / "lite" / "encoder_int8.tflite")).get_signature_runner()
    assert cosines(run(**inputs)["default"], expected).min() > 0.99
    # Other numbers of rows and tokens.
    short = {name: ids[:3, :30] for name, ids in inputs.items()}
    assert run(**short)["default"].shape == (3, 16)


def onnx_vectors(file, inputs):
    session = onnxruntime.InferenceSession(str(file))
    assert {put.name for put in session.get_inputs()} == {
        "input_ids", "attention_mask", "token_type_ids",
    }  # fmt: skip
    feed = {
        "input_ids": inputs["input_word_ids"].astype(np.int64),
        "attention_mask": inputs["input_mask"].astype(np.int64),
        "token_type_ids": inputs["input_type_ids"].astype(np.int64),
    }
    return session.run(["default", "last_hidden_state"], feed)


@pytest.mark.parametrize(("file", "least"), [("model.onnx", 0.999999), ("model_int8.onnx", 0.99)])
def test_onnx(smaller, inputs, expected, file, least):
    pooled, hidden = onnx_vectors(smaller / "onnx" / file, inputs)
    assert cosines(pooled, expected).min() > least
    assert hidden.shape == (*inputs["input_word_ids"].shape, 16)


@pytest.mark.parametrize(
    ("file", "least"),
    [
        ("onnx/model.onnx", 0.999999),
        ("onnx/model_int8.onnx", 0.99),
        ("lite/encoder_int8.tflite", 0.99),
    ],
)
def test_embedding_with_a_file(
    smaller, model_dir, tmp_path, expected, multilingual_sentences, file, least
):
    whole = tmp_path / "model"
    shutil.copytree(smaller, whole)
    if "onnx" in file:
        # A vocabulary is enough, whatever else there is.
        alone = labse_tf.load(whole / file).encode(multilingual_sentences)
        assert cosines(alone, expected).min() > least
    else:
        with pytest.raises(InputError, match="is not in a model dir"):
            labse_tf.load(whole / file)
    shutil.copytree(model_dir / "preprocessor", whole / "preprocessor")
    encoder = open_encoder(str(whole / file))
    found = encoder.encode(multilingual_sentences)
    assert cosines(found, expected).min() > least
    others = [whole / "onnx" / name for name in ("model.onnx", "model_int8.onnx")]
    others = [other for other in others if other != whole / file]
    hashes = {ModelDir(other).sha256() for other in (whole / file, model_dir, *others)}
    assert len(hashes) == 2 + len(others)
    assert encoder.facts()["model_sha256"] == ModelDir(whole / file).sha256()
    with pytest.raises(InputError, match="no such file"):
        labse_tf.load(whole / "onnx" / "other.onnx")
    (whole / file).write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read"):
        labse_tf.load(whole / file)


def test_int8_weights_and_facts(smaller):
    kinds = {
        name: {one.data_type for one in onnx.load(smaller / "onnx" / name).graph.initializer}
        for name in ("model.onnx", "model_int8.onnx")
    }
    assert onnx.TensorProto.INT8 in kinds["model_int8.onnx"]
    assert onnx.TensorProto.INT8 not in kinds["model.onnx"]
    facts = json.loads((smaller / "model.json").read_text("utf-8"))
    assert facts["formats"] == ["lite", "onnx"]
    assert (smaller / "vocab.txt").is_file()
    assert not (smaller / "encoder").exists()


def test_a_table_is_of_saved_models(trained_run, tmp_path, capsys):
    options = ("--table", "int8", "--format", "hf")
    assert export(trained_run, tmp_path / "model", *options) == 2
    assert "--table int8 is only for the SavedModels" in capsys.readouterr().err.splitlines()[-1]


def test_what_a_file_of_lite_cannot_be_made_of(trained_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("export.model_dir.MOST_BYTES", 1000)
    assert export(trained_run, tmp_path / "model", "--format", "hub,lite") == 2
    assert "more than the format lite can hold" in capsys.readouterr().err.splitlines()[-1]


def test_weights_past_2_gb_are_beside_the_onnx_file(smaller, tmp_path, monkeypatch, inputs):
    monkeypatch.setattr("export.onnx.MOST_BYTES", 1000)
    for name in ("model.onnx", "model_int8.onnx"):
        whole = smaller / "onnx" / name
        save_model(onnx.load(whole), {}, tmp_path / name)
        assert (tmp_path / f"{name}_data").stat().st_size > 1000
        one, other = onnx_vectors(tmp_path / name, inputs), onnx_vectors(whole, inputs)
        np.testing.assert_array_equal(one[0], other[0])


def test_an_unknown_table(trained_run, tmp_path, capsys):
    assert export(trained_run, tmp_path / "model", "--table", "int4") == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "unknown type of embedding table: int4; choose from float32, float16, int8" in error


@pytest.fixture(scope="module")
def grown_run(static_run, config_file, tmp_path_factory):
    """Two columns of its table are far larger than the others."""
    run = tmp_path_factory.mktemp("grown") / "run"
    options = ["--set", "encoder.pooling=mean", "--set", "train.steps=0"]
    command = ["train", config_file, "--init", static_run, "--run-dir", run, *options]
    assert main([str(word) for word in command]) == 0
    return run


def test_int8_of_layers_that_were_grown_on_a_table(grown_run, tmp_path):
    """Rounded together with the two large columns, the others are lost."""
    out = tmp_path / "m"
    assert export(grown_run, out, "--format", "onnx,lite") == 0
    texts = ["Guten Morgen.", "今日は。", "Два кота и дом."]
    float32, int8 = (
        labse_tf.load(out / "onnx" / name).encode(texts)
        for name in ("model.onnx", "model_int8.onnx")
    )
    assert cosines(int8, float32).min() > 0.99
    ids, vectors = (np.load(out / "verification" / f"{n}.npy") for n in ("word_ids", "vectors"))
    given = {"input_word_ids": ids, "input_mask": (ids > 0).astype(np.int32)}
    run = Interpreter(str(out / "lite" / "encoder_int8.tflite")).get_signature_runner()
    lite = run(**given, input_type_ids=0 * ids)["default"]
    assert cosines(lite, vectors).min() > 0.95


def test_int8_by_column_by_hand():
    """The largest value of a column is 127 scales; a column of zeros stays one."""
    table = np.array([[254, -0.63, 0], [-2, 1.27, 0]], np.float32)
    layer = PackedEmbedding(2, 3, "int8", by_column=True)
    layer.build(None)
    layer.pack(table)
    np.testing.assert_array_equal(layer.embeddings, [[127, -63, 0], [-1, 127, 0]])
    np.testing.assert_allclose(layer.scales, [[2, 0.01, 0]], rtol=1e-6)
    np.testing.assert_allclose(layer(tf.constant([[1], [0]]))[:, 0], table[::-1], rtol=1e-6)


def wrong_vectors(monkeypatch):
    """The converter loses a weight: only the check of the file can tell."""
    convert = export_lite._convert

    def lossy(encoder, types=()):
        [*_, weight, _] = encoder.trainable_variables
        kept = tf.identity(weight)
        weight.assign(-weight)
        found = convert(encoder, types)
        weight.assign(kept)
        return found

    monkeypatch.setattr(export_lite, "_convert", lossy)


def no_conversion(monkeypatch):
    def refuse(encoder, types=()):
        raise ValueError("cannot lower the operation\nmany more lines")

    monkeypatch.setattr(export_lite, "_convert", refuse)


@pytest.mark.parametrize("fault", [wrong_vectors, no_conversion])
def test_a_format_that_fails_leaves_the_others(fault, trained_run, tmp_path, monkeypatch, capsys):
    fault(monkeypatch)
    out = tmp_path / "model"
    assert export(trained_run, out, "--format", "lite,onnx") == 2
    [line] = [one for one in capsys.readouterr().err.split("\n") if "labse: error" in one]
    assert str(out) in line and "lite" in line
    assert json.loads((out / "model.json").read_text("utf-8"))["formats"] == ["onnx"]
    assert not (out / "lite").exists() and "tflite" not in (out / "README.md").read_text("utf-8")
    monkeypatch.undo()
    assert main(["verify", str(out)]) == 0
    assert labse_tf.load(out / "onnx" / "model.onnx").encode(["Hallo"]).shape == (1, 16)


def test_a_format_that_fails_alone_leaves_nothing(trained_run, tmp_path, monkeypatch, capsys):
    no_conversion(monkeypatch)
    assert export(trained_run, tmp_path / "model", "--format", "lite") == 2
    assert list(tmp_path.iterdir()) == []
    # A library that is missing is no fault of the format's: nothing is made.
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert export(trained_run, tmp_path / "model", "--format", "lite,onnx") == 2
    assert list(tmp_path.iterdir()) == []
