"""ONNX encoders without TensorFlow: the tokens of the preprocessor, and a process that lacks it."""

from __future__ import annotations

import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import labse_tf
from labse_tf.cli.main import main
from labse_tf.embedding.light import LightEmbedder

ODD = [
    "",
    " ",
    "\u00a0a\u3000b",
    "a\u00adb\u200dc",
    "x" * 700,
    "ไทย" * 100,
    "\u2028",
    "a b " * 90,
    "É e\u0301",
]
# What a process finds that was installed without TensorFlow.
WITHOUT = """
import sys
for name in ("tensorflow", "tensorflow_text", "tf_keras", "official", "apache_beam", "pydantic"):
    sys.modules[name] = None
"""


@pytest.fixture(scope="module")
def onnx_dir(trained_run, made_once):
    """A model dir with ONNX alone, as the light installation reads it."""

    def make(folder):
        arguments = ["export", str(trained_run), "--format", "onnx", "--no-verify"]
        assert main([*arguments, "--out", str(folder)]) == 0

    return made_once("onnx_alone", make)


@pytest.fixture(scope="module")
def light(onnx_dir):
    return labse_tf.load(onnx_dir / "onnx" / "model.onnx")


def test_vectors_are_those_of_the_model_dir(light, model_dir, multilingual_sentences):
    model = labse_tf.load(model_dir)
    assert isinstance(light, LightEmbedder)
    texts = [*multilingual_sentences, *ODD]
    assert (light.dim, light.sequence_length) == (model.dim, model.sequence_length)
    np.testing.assert_allclose(light.encode(texts), model.encode(texts), atol=2e-5)
    assert light.texts_cut == model.texts_cut > 0


@pytest.fixture(scope="module")
def preprocessor(model_dir):
    return tf.saved_model.load(str(model_dir / "preprocessor"))


@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
@settings(max_examples=200, deadline=None)
def test_tokens_are_those_of_the_preprocessor(light, preprocessor, text):
    expected = preprocessor.tokenize(tf.constant([text])).merge_dims(1, 2).to_list()
    assert light._tokenize([text]) == expected


def in_a_process_without(code, *arguments):
    command = [sys.executable, "-c", WITHOUT + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_no_tensorflow_is_needed(onnx_dir, light, tmp_path):
    texts = ["Hello", "Hallo", "今日は"]
    code = """
import numpy as np, labse_tf
np.save(sys.argv[2], labse_tf.load(sys.argv[1]).encode(["Hello", "Hallo", "今日は"]))
"""
    done = in_a_process_without(code, onnx_dir / "onnx" / "model.onnx", tmp_path / "vectors.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "vectors.npy"), light.encode(texts), atol=1e-6)


def test_commands_without_tensorflow(onnx_dir, tmp_path):
    encoder = onnx_dir / "onnx" / "model_int8.onnx"
    (tmp_path / "de.txt").write_text("Guten Morgen\nEin Haus\nDanke\n", "utf-8")
    (tmp_path / "en.txt").write_text("Thank you\nA house\nGood morning\n", "utf-8")
    (tmp_path / "pairs.tsv").write_text("A house\tEin Haus\n", "utf-8")
    sides = [tmp_path / "de.txt", tmp_path / "en.txt"]
    for command in (
        ["embed", encoder, tmp_path / "de.txt", "--out", tmp_path / "vectors.npy"],
        ["score", encoder, tmp_path / "pairs.tsv", "--out", tmp_path / "scores.tsv"],
        ["mine", encoder, *sides, "--out", tmp_path / "mined.tsv"],
    ):
        code = "from labse_tf.cli.main import main\nsys.exit(main(sys.argv[1:]))"
        done = in_a_process_without(code, *command)
        assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "vectors.npy").shape[0] == 3
    assert (tmp_path / "mined.tsv").read_text("utf-8").count("\n") >= 1


def test_what_needs_it_says_so(model_dir, trained_run):
    code = "import labse_tf\nlabse_tf.load(sys.argv[1])"
    done = in_a_process_without(code, model_dir)
    assert "InputError" in done.stderr and "pip install 'labse-tf[tf]'" in done.stderr
    code = "from labse_tf.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    done = in_a_process_without(code, "export", trained_run, "--out", "nowhere")
    assert done.returncode == 2 and "pip install" in done.stderr


def test_import_is_fast_and_light():
    code = "import labse_tf\nprint(len(sys.modules['labse_tf'].__version__))"
    counted = code + "\nprint(sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{counted}"], capture_output=True, text=True, check=True
    )
    heavy = {"tensorflow", "numpy", "onnxruntime", "apache_beam", "sklearn", "faiss"}
    assert not any(f"'{name}'" in done.stdout for name in heavy)


def test_a_vocabulary_is_needed(onnx_dir, tmp_path):
    shutil.copytree(onnx_dir / "onnx", tmp_path / "onnx")
    with pytest.raises(labse_tf.errors.InputError, match="is not in a model dir"):
        labse_tf.load(tmp_path / "onnx" / "model.onnx")
