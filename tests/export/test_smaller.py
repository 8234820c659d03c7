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
import tf_keras
from runs import labse_run

import labse_tf
from export import lite as export_lite
from export.lite import LITE_FILE, save_lite
from export.onnx import save_model
from export.source import Source
from export.transforms import LEAST_COSINE, PackedEmbedding, least_cosine
from labse_tf.cli.main import main
from labse_tf.config import EncoderConfig
from labse_tf.embedding.model_dir import LiteRuntime, ModelDir, open_runtime
from labse_tf.embedding.open import open_encoder
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder, embed


def packed(dtype, table, **options):
    layer = PackedEmbedding(*table.shape, dtype, **options)
    layer.build(None)
    layer.pack(table)
    return layer


@pytest.mark.parametrize("by_column", [False, True])
def test_int8_by_hand(by_column):
    """The largest value of a row (or column) is 127 scales; one of zeros stays so."""
    table = np.array([[1.27, -0.63, 0.004], [0, 0, 0], [-254, 127, 1]], np.float32)
    expected = np.array([[127, -63, 0], [0, 0, 0], [-127, 64, 0]])
    scales = np.array([[0.01], [0], [2]])
    turn = np.transpose if by_column else np.asarray
    layer = packed("int8", turn(table), by_column=by_column)
    np.testing.assert_array_equal(layer.embeddings, turn(expected))
    np.testing.assert_allclose(layer.scales, turn(scales), rtol=1e-6)
    found = layer(tf.constant([[2, 0], [1, 1]]))
    assert found.dtype == tf.float32 and found.shape == (2, 2, 3)
    np.testing.assert_allclose(found[0], turn(expected * scales)[[2, 0]], rtol=1e-6)


def test_float16_by_hand():
    table = np.array([[0.1, 1 / 3], [1000.3, 0]], np.float32)
    layer = packed("float16", table)
    assert layer.embeddings.dtype == tf.float16
    np.testing.assert_array_equal(layer(tf.constant([0, 1])), table.astype(np.float16))
    # A row of zeros has no cosine.
    assert least_cosine(table, 2 * table) == pytest.approx(1)
    assert least_cosine(np.zeros_like(table), table) == 0


def export(source, out, *more):
    return main(["export", str(source), "--out", str(out), *more])


@pytest.fixture(scope="module")
def expected(every_format, multilingual_sentences):
    return labse_tf.load(every_format).encode(multilingual_sentences)


@pytest.mark.slow
def test_a_packed_table(shallow_run, tmp_path, expected, multilingual_sentences, capsys):
    """It passes all checks of `labse verify`, and is no start for another export."""
    out = tmp_path / "model"
    assert export(shallow_run, out, "--table", "int8", "--format", "hub") == 0
    found = labse_tf.load(out).encode(multilingual_sentences)
    assert least_cosine(found, expected) > 0.999 and (found != expected).any()
    assert json.loads((out / "model.json").read_text("utf-8"))["table"] == "int8"
    encoder = tf.saved_model.load(str(out / "encoder"))
    [embeddings] = [v for v in encoder.variables if "word_embeddings/embeddings" in v.name]
    assert embeddings.dtype == tf.int8
    assert not any("word_embeddings" in v.name for v in encoder.trainable_variables)
    assert export(out, tmp_path / "again", "--no-verify") == 2
    assert "has an embedding table of int8" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "again").exists()


def test_onnx(every_format, expected, multilingual_sentences, tmp_path, monkeypatch):
    """With weights of more than 2 GB beside the file too; only one file has weights in int8."""
    monkeypatch.setattr("export.onnx.MOST_BYTES", 1000)
    preprocessor = tf.saved_model.load(str(every_format / "preprocessor"))
    tokens = preprocessor.tokenize(tf.constant(multilingual_sentences))
    packed = preprocessor.bert_pack_inputs([tokens], seq_length=tf.constant(70))
    names = {"input_ids": "word_ids", "attention_mask": "mask", "token_type_ids": "type_ids"}
    feed = {name: packed[f"input_{ours}"].numpy().astype(np.int64) for name, ours in names.items()}
    for name, least in (("model.onnx", 0.999999), ("model_int8.onnx", 0.99)):
        file = every_format / "onnx" / name
        save_model(onnx.load(file), {}, tmp_path / name)
        assert (tmp_path / f"{name}_data").stat().st_size > 1000
        for path in (file, tmp_path / name):
            session = onnxruntime.InferenceSession(str(path))
            assert {put.name for put in session.get_inputs()} == set(names)
            pooled, hidden = session.run(["default", "last_hidden_state"], feed)
            assert least_cosine(pooled, expected) > least
            assert hidden.shape == (*feed["input_ids"].shape, 16)
        kinds = {one.data_type for one in onnx.load(file).graph.initializer}
        assert (onnx.TensorProto.INT8 in kinds) == ("int8" in name)


@pytest.mark.parametrize("file", ["onnx/model_int8.onnx", LITE_FILE])
def test_embedding_with_a_file(every_format, tmp_path, expected, multilingual_sentences, file):
    found = open_encoder(every_format / file)
    assert least_cosine(found.encode(multilingual_sentences), expected) > 0.99
    files = ("onnx/model.onnx", "onnx/model_int8.onnx", LITE_FILE, ".")
    hashes = {other: ModelDir(every_format / other).sha256() for other in files}
    assert len(set(hashes.values())) == 4
    assert found.facts()["model_sha256"] == hashes[file]
    shutil.copy(every_format / "model.json", tmp_path)
    shutil.copytree(every_format / "preprocessor", tmp_path / "preprocessor")
    with pytest.raises(InputError, match="no such file"):
        labse_tf.load(tmp_path / file)
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read"):
        labse_tf.load(tmp_path / file)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--format", "hub,gguf"), "unknown format gguf; choose from hub, text, hf"),
        (("--table", "int8", "--format", "hf"), "--table int8 is only for the SavedModels"),
        (("--table", "int4"), "int4; choose from float32, float16, int8"),
        (("--format", "hub,lite"), "more than the format lite can hold"),
        (("--length", "2"), "--length 2 is out of range"),
        (("--length", "129"), "'encoder.max_positions'"),
    ],
)
def test_refusals(shallow_run, tmp_path, capsys, monkeypatch, options, problem):
    monkeypatch.setattr("export.model_dir.MOST_BYTES", 1000)
    assert export(shallow_run, tmp_path / "model", *options) == 2
    assert problem in capsys.readouterr().err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def unequal_columns():
    """Two columns are 300 times as large as the others, which alone make the vectors."""
    sizes = {"vocab_size": 4000, "hidden_size": 16, "intermediate_size": 32, "max_positions": 16}
    config = EncoderConfig(num_layers=1, num_attention_heads=2, **sizes)
    tf_keras.utils.set_random_seed(8)  # Weights that lose much.
    encoder = build_encoder(config)
    scale = np.where(np.arange(16) < 2, 300, 1).astype(np.float32)
    table = encoder.get_embedding_table()
    table.assign(table * scale)
    [pooler] = [v for v in encoder.variables if "pooler_transform/kernel" in v.name]
    pooler.assign(pooler * (scale[:, np.newaxis] == 1))
    return Source(encoder, config, [], 100, None, None)


@pytest.mark.slow
def test_lite_keeps_what_int8_activations_lose(unequal_columns, tmp_path):
    source = unequal_columns
    ids = np.random.default_rng(1).integers(104, 4000, (20, 12)).astype(np.int32)
    inputs = {"input_word_ids": ids, "input_mask": np.ones_like(ids), "input_type_ids": 0 * ids}
    vectors = embed(source.encoder, inputs, training=False).numpy()
    plain = tmp_path / "plain.tflite"
    plain.write_bytes(export_lite._convert(source.encoder))
    assert least_cosine(LiteRuntime(plain).run(inputs), vectors) < LEAST_COSINE
    save_lite(source, tmp_path, inputs=inputs, vectors=vectors)
    assert (tmp_path / LITE_FILE).stat().st_size < 4 * source.encoder.count_params()
    assert least_cosine(LiteRuntime(tmp_path / LITE_FILE).run(inputs), vectors) >= LEAST_COSINE


@pytest.mark.slow
def test_int8_of_layers_that_were_grown_on_a_table(static_run, config_file, tmp_path):
    """Rounded together with the two large columns of the table, the others are lost."""
    sets = ("encoder.pooling=mean", "train.steps=0")
    assert labse_run("train", config_file, tmp_path / "run", *sets, init=static_run) == 0
    out = tmp_path / "model"
    assert export(tmp_path / "run", out, "--format", "onnx,lite", "--no-verify") == 0
    ids, vectors = (np.load(out / "verification" / f"{n}.npy") for n in ("word_ids", "vectors"))
    inputs = {"input_word_ids": ids, "input_mask": (ids > 0).astype(np.int32)}
    inputs["input_type_ids"] = 0 * ids
    for file, least in (("onnx/model_int8.onnx", 0.99), (LITE_FILE, 0.95)):
        assert least_cosine(open_runtime(out / file).run(inputs), vectors) > least


def wrong_vectors(encoder, types=(), convert=export_lite._convert):
    """The converter loses a weight: only the check of the file can tell."""
    [*_, weight, _] = encoder.trainable_variables
    kept = tf.identity(weight)
    weight.assign(-weight)
    found = convert(encoder, types)
    weight.assign(kept)
    return found


def no_conversion(encoder, types=()):
    raise ValueError("cannot lower the operation\nmany more lines")


@pytest.mark.parametrize("convert", [wrong_vectors, no_conversion])
def test_a_format_that_fails_leaves_the_others(convert, shallow_run, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(export_lite, "_convert", convert)
    out = tmp_path / "model"
    assert export(shallow_run, out, "--format", "lite,hf") == 2
    [line] = [one for one in capsys.readouterr().err.split("\n") if "labse: error" in one]
    assert str(out) in line and "lite" in line
    assert json.loads((out / "model.json").read_text("utf-8"))["formats"] == ["hf"]
    assert not (out / "lite").exists() and "tflite" not in (out / "README.md").read_text("utf-8")
    assert (out / "model.safetensors").is_file() and (out / "vocab.txt").is_file()


def test_a_format_that_fails_alone_leaves_nothing(shallow_run, tmp_path, monkeypatch):
    monkeypatch.setattr(export_lite, "_convert", no_conversion)
    assert export(shallow_run, tmp_path / "model", "--format", "lite") == 2
    assert list(tmp_path.iterdir()) == []
    # A library that is missing is no fault of the format's: nothing is made.
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert export(shallow_run, tmp_path / "model", "--format", "lite,onnx") == 2
    assert list(tmp_path.iterdir()) == []
