"""`labse verify`: a model dir of ours passes every check, and each check can fail.

The checks run where nothing of this repository can be imported.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from export.source import open_source
from export.verification import verify
from labse_tf.cli.main import main
from labse_tf.errors import InputError

CHECKS = [
    "ours is hidden",
    "no absolute path",
    "loaders agree",
    "preprocessor call",
    "tokenize",
    "bert pack inputs",
    "within tf data",
    "encoder call",
    "any length",
    "signatures",
    "assets",
    "text encoder",
    "training graph",
    "dropout",
    "fine tuning",
    "saved again",
]


@pytest.fixture
def copied(model_dir, tmp_path):
    return Path(shutil.copytree(model_dir, tmp_path / "copy"))


def checks_of(model_dir):
    """Returns what came of each check, whatever came of all."""
    checks = []
    try:
        verify(model_dir, checks.append)
    except InputError as error:
        assert not all(check.ok for check in checks), error
    else:
        assert all(check.ok for check in checks)
    return {check.name: check for check in checks}


@pytest.mark.slow
def test_a_model_dir_passes(copied, capsys):
    assert main(["verify", str(copied)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[8:36].strip() for line in lines] == CHECKS
    assert all(line.startswith("ok ") for line in lines)
    details = dict(zip(CHECKS, (line[36:] for line in lines), strict=True))
    assert details["ours is hidden"] == "only TensorFlow, TF Text and TF Hub"
    assert details["any length"] == "1, 2, 7, 64, 128; a batch of 1000"
    assert details["fine tuning"].startswith("39 weights")
    assert details["training graph"].startswith("18 sentences")


@pytest.mark.slow
def test_what_model_json_and_the_vectors_say_is_checked(copied):
    """The graphs are right, everything that is told of them is wrong."""
    facts = json.loads((copied / "model.json").read_text("utf-8"))
    facts["encoder"]["num_layers"] += 1
    facts["sequence_length"] -= 1
    facts["vocabulary"]["tokens"] += 1
    facts["source"] = "/home/someone/runs/dual"
    (copied / "model.json").write_text(json.dumps(facts), "utf-8")
    vectors = np.load(copied / "verification" / "vectors.npy")
    np.save(copied / "verification" / "vectors.npy", vectors + 1e-4)
    checks = checks_of(copied)
    failed = {name for name, check in checks.items() if not check.ok}
    assert failed == {
        "no absolute path",
        "preprocessor call",
        "tokenize",
        "encoder call",
        "assets",
        "training graph",
        "fine tuning",
    }
    assert "/home/someone/runs/dual" in checks["no absolute path"].detail
    # 1e-4 in each of 16 columns of unit vectors.
    assert checks["training graph"].detail == "they differ by 4.0e-04"


def test_other_graphs_fail(copied, trained_run, tmp_path, vocab_file, capsys):
    """An encoder that normalises, has a frozen weight, and has no named signature."""
    encoder = open_source(trained_run).encoder
    inputs = {
        name: tf_keras.Input(shape=(None,), dtype=tf.int32, name=name) for name in encoder.inputs
    }
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
    checks = checks_of(copied)
    failed = {name for name, check in checks.items() if not check.ok}
    assert failed == {
        "encoder call",
        "signatures",
        "assets",
        "text encoder",
        "fine tuning",
    }
    assert checks["encoder call"].detail == "default is not pooled_output"
    assert checks["assets"].detail == "do_lower_case is true"
    assert checks["fine tuning"].detail == "38 trainable weights, not 39"


@pytest.mark.slow
def test_one_line_tells_what_failed(copied, capsys):
    (copied / "encoder" / "saved_model.pb").write_bytes(b"no graph")
    assert main(["verify", str(copied)]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith(f"labse: error: {copied}: cannot be loaded (") and "\n" not in error


@pytest.mark.parametrize("part", ["preprocessor", "encoder"])
def test_what_is_no_model_dir(copied, part, capsys):
    shutil.rmtree(copied / part)
    assert main(["verify", str(copied)]) == 2
    error = capsys.readouterr().err
    assert f"{copied}: is not a model dir: it has no {part}/saved_model.pb" in error


def test_an_export_that_fails_a_check_leaves_nothing(trained_run, tmp_path, monkeypatch, capsys):
    """Another client, which finds the checks above too slow to be run once more."""
    client = tmp_path / "client.py"
    lines = [
        {"check": "one", "ok": True, "detail": ""},
        {"check": "two", "ok": False, "detail": "x"},
    ]
    client.write_text(f"import json\nfor line in {lines}:\n    print(json.dumps(line))\n", "utf-8")
    monkeypatch.setattr("export.verification.CLIENT", client)
    out = tmp_path / "model"
    assert main(["export", str(trained_run), "--out", str(out), "--format", "hub"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"{out}: 1 of 2 checks failed, first 'two': x; " in error
    assert list(tmp_path.iterdir()) == [client]


def test_files_of_a_model_dir(model_dir, vocab_file):
    names = {path.name for path in model_dir.iterdir()}
    parts = {"preprocessor", "encoder", "text_encoder"}
    assert names == parts | {"verification", "model.json", "README.md"}
    for part in parts - {"verification"}:
        assert (model_dir / part / "assets" / "vocab.txt").read_bytes() == vocab_file.read_bytes()
