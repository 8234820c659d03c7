"""`labse export --languages`: the same vectors from fewer pieces."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from tiny_text import sentences_of

import labse_tf
from labse_tf.cli.main import main
from vocab import wordpiece_file


def export(source, out, *more):
    options = ("--no-verify", "--format", "hub", *map(str, more))
    return main(["export", str(source), "--out", str(out), *options])


@pytest.fixture(scope="module")
def whole(model_dir):
    return labse_tf.load(model_dir)


@pytest.fixture(scope="module")
def german(tmp_path_factory, model_dir, bitext_dir):
    """English and German, from the pairs of all languages."""
    out = tmp_path_factory.mktemp("languages") / "model"
    assert export(model_dir, out, "--languages", "de,en", "--language-text", bitext_dir) == 0
    return out


@pytest.mark.slow
def test_their_sentences_have_the_same_vectors_bit_for_bit(german, whole, vocab_file):
    texts = [*sentences_of("de"), *sentences_of("en")]
    found = labse_tf.load(german).encode(texts)
    np.testing.assert_array_equal(found, whole.encode(texts))
    tokens = wordpiece_file.read(german / "encoder" / "assets" / "vocab.txt")
    before = wordpiece_file.read(vocab_file)
    assert len(tokens) < len(before) / 2 and "猫" not in tokens
    assert tokens == [token for token in before if token in set(tokens)]


def test_the_rows_are_those_of_the_pieces(german, model_dir, vocab_file):
    tokens = wordpiece_file.read(german / "encoder" / "assets" / "vocab.txt")
    before = {token: row for row, token in enumerate(wordpiece_file.read(vocab_file))}
    tables = [
        next(
            variable.numpy()
            for variable in tf.saved_model.load(str(folder / "encoder")).variables
            if "word_embeddings" in variable.name
        )
        for folder in (german, model_dir)
    ]
    np.testing.assert_array_equal(tables[0], tables[1][[before[token] for token in tokens]])


def test_facts_and_report(model_dir, bitext_dir, tmp_path, capsys):
    out = tmp_path / "model"
    arguments = ("--languages", "th,ja", "--language-text", bitext_dir)
    assert export(model_dir, out, *arguments) == 0
    facts = json.loads((out / "model.json").read_text("utf-8"))
    before = json.loads((model_dir / "model.json").read_text("utf-8"))
    assert facts["languages"] == ["ja", "th"]
    assert facts["kept_of"] == before["vocabulary"]
    assert facts["training"] == before["training"]
    assert facts["encoder"]["vocab_size"] == facts["vocabulary"]["tokens"]
    report = capsys.readouterr().out
    pieces, of = facts["vocabulary"]["tokens"], before["vocabulary"]["tokens"]
    assert f"pieces: {pieces} of {of}" in report
    assert "texts: 96 read" in report
    assert "Japanese (ja), Thai (th)" in (out / "README.md").read_text("utf-8")


def test_without_text_all_of_their_scripts_stays(model_dir, whole, tmp_path):
    out = tmp_path / "model"
    assert export(model_dir, out, "--languages", "ru,ja") == 0
    tokens = set(wordpiece_file.read(out / "encoder" / "assets" / "vocab.txt"))
    assert {"Съ"[0], "##ш", "猫", "カ", "ま", "."} <= tokens
    assert not tokens & {"a", "##ü", "ق", "แ", "한"}
    texts = [*sentences_of("ru"), *sentences_of("ja")]
    np.testing.assert_array_equal(labse_tf.load(out).encode(texts), whole.encode(texts))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--languages", "de,xx"], "'xx' is not the code of a language"),
        (["--languages", "de,sw", "--language-text", "BITEXT"], "there is no text in sw"),
        (["--language-text", "BITEXT"], "--language-text requires --languages"),
        (["--languages", "de", "--language-text", "nowhere"], "nowhere"),
    ],
)
def test_refusals(model_dir, bitext_dir, tmp_path, capsys, options, problem):
    options = [str(bitext_dir) if option == "BITEXT" else option for option in options]
    assert export(model_dir, tmp_path / "model", *options) == 2
    error = capsys.readouterr().err.strip()
    assert problem in error and "\n" not in error
    assert list(tmp_path.iterdir()) == []
