"""The programs in examples/, run as a user runs them, on the tiny model."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import forked
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401
from repository import ROOT
from tiny_text import sentences_of

from labse_tf.cli.main import main

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def distinct_model(tmp_path_factory, config_file):
    """Vectors that are the average of their sentence lie far apart, as the tiny run's do not."""
    folder = tmp_path_factory.mktemp("distinct")
    run_dir, model = str(folder / "run"), folder / "model"
    settings = ("train.steps=0", "encoder.averaging_start=true", "encoder.initializer_range=0.05")
    overrides = [f"--set={setting}" for setting in settings]
    assert main(["train", str(config_file), "--run-dir", run_dir, *overrides]) == 0
    assert main(["export", run_dir, "--out", str(model), "--length", "32", "--no-verify"]) == 0
    return model


def run(name, *arguments):
    done = forked.run(EXAMPLES / name, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_each_tells_how_it_is_called(monkeypatch, capsys):
    names = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert names
    for name in names:
        monkeypatch.setattr(sys, "argv", [name])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        # argparse writes to stderr.
        assert f"{name} " in f"{ended.value} {capsys.readouterr().err}"


@pytest.mark.slow
def test_search(distinct_model, tmp_path):
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("\n".join(sentences_of("de")) + "\n", "utf-8")
    lines = run("cross_lingual_search.py", distinct_model, sentences, sentences_of("de")[7])
    assert len(lines) == 5
    assert lines[0] == f"1.000  {sentences_of('de')[7]}"


@pytest.mark.slow
def test_a_classifier_on_frozen_vectors(distinct_model, tmp_path):
    """Two scripts are told apart, whatever the encoder has learned."""
    rows = [("de", text) for text in sentences_of("de")]
    rows += [("ja", text) for text in sentences_of("ja")]
    for name, part in (("train", rows[::2]), ("test", rows[1::2])):
        lines = "".join(f"{label}\t{text}\n" for label, text in part)
        (tmp_path / f"{name}.tsv").write_text(lines, "utf-8")
    lines = run("classify.py", distinct_model, tmp_path / "train.tsv", tmp_path / "test.tsv")
    accuracy = float(lines[-1].removeprefix("accuracy on 48 texts: ").removesuffix(" %"))
    assert accuracy > 75


@pytest.mark.slow
def test_fine_tuning(distinct_model, bitext_dir, tmp_path):
    lines = run("fine_tune.py", distinct_model, bitext_dir / "ja.tsv", tmp_path / "tuned", 1e-3)
    losses = [float(line.rpartition(" ")[2]) for line in lines if line.startswith("epoch ")]
    assert len(losses) == 10 and losses[-1] < 0.8 * losses[0]
    tuned = tf.saved_model.load(str(tmp_path / "tuned"))
    inputs = tf.saved_model.load(str(distinct_model / "preprocessor"))(tf.constant(["猫と家。"]))
    assert tuned(inputs)["default"].shape == (1, 16)
    assert Path(tuned.vocab_file.asset_path.numpy().decode()).is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, arguments, problem",
    [
        # TensorFlow opens the files, which tells its own schemes from others.
        ("classify.py", ["m", "s3://b/train.tsv", "t"], "File system scheme 's3' not implemented"),
        ("fine_tune.py", ["m", "pairs", "s3://b/out"], "File system scheme 's3' not implemented"),
        ("html_to_warc.py", ["s3://b/pages", "--out", "x.warc.gz"], "is no folder of this machine"),
    ],
)
def test_no_folder_is_named_after_a_scheme(name, arguments, problem, tmp_path):
    done = forked.run(EXAMPLES / name, *arguments, cwd=tmp_path)
    assert done.returncode != 0 and problem in done.stderr
    assert list(tmp_path.iterdir()) == []
