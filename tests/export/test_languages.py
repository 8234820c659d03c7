"""`labse export --languages`: the same vectors from fewer pieces."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from command_line import refused
from tiny_text import sentences_of

from export.source import open_source
from export.transforms import count_pieces, pieces_by_script, restrict
from labse_tf.cli.main import main
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from vocab import wordpiece_file


@pytest.fixture(scope="module")
def source(shallow_run):
    return open_source(shallow_run)


def vectors_of(source, texts, folder):
    wordpiece_file.write(folder / "vocab.txt", source.tokens)
    tokenizer = WordPieceTokenizer(folder / "vocab.txt", max_bytes_per_word=600)
    inputs = tokenizer.pack([tokenizer(tf.constant(texts))], 64)
    return source.encoder(inputs, training=False)["pooled_output"].numpy()


@pytest.mark.parametrize("has_text", [True, False])
def test_sentences_have_the_same_vectors_bit_for_bit(source, tmp_path, has_text):
    languages = ("de", "en") if has_text else ("ru", "ja")
    texts = [*sentences_of(languages[0]), *sentences_of(languages[1])]
    if has_text:
        labelled = [(code, text) for code in ("de", "en", "ja") for text in sentences_of(code)]
        pieces = count_pieces(source, languages, labelled)
    else:
        pieces = pieces_by_script(source, languages)
        assert {"Съ"[0], "##ш", "猫", "カ", "ま", "."} <= pieces
        assert not pieces & {"a", "##ü", "ق", "แ", "한"}
    found = restrict(source, languages, pieces)
    (tmp_path / "whole").mkdir()
    expected = vectors_of(source, texts, tmp_path / "whole")
    np.testing.assert_array_equal(vectors_of(found, texts, tmp_path), expected)
    assert len(found.tokens) < len(source.tokens)
    assert found.tokens == [token for token in source.tokens if token in set(found.tokens)]
    rows = [source.tokens.index(token) for token in found.tokens]
    tables = [one.encoder.get_embedding_table().numpy() for one in (found, source)]
    np.testing.assert_array_equal(tables[0], tables[1][rows])


def test_facts_and_report(every_format, bitext_dir, tmp_path, capsys):
    out = tmp_path / "model"
    command = ["export", every_format, "--out", out, "--no-verify", "--format", "hf"]
    command += ["--languages", "th,ja", "--language-text", bitext_dir]
    assert main([str(word) for word in command]) == 0
    facts, before = (
        json.loads((folder / "model.json").read_text("utf-8")) for folder in (out, every_format)
    )
    assert (facts["languages"], facts["kept_of"]) == (["ja", "th"], before["vocabulary"])
    assert facts["training"] == before["training"]
    pieces, of = facts["vocabulary"]["tokens"], before["vocabulary"]["tokens"]
    assert facts["encoder"]["vocab_size"] == pieces < of
    assert f"pieces: {pieces} of {of}" in capsys.readouterr().out
    assert "Japanese (ja), Thai (th)" in (out / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--languages", "de,xx"], "'xx' is not the code of a language"),
        (["--languages", "de,sw", "--language-text", "BITEXT"], "there is no text in sw"),
        (["--language-text", "BITEXT"], "--language-text requires --languages"),
        (["--languages", "de", "--language-text", "nowhere"], "nowhere"),
    ],
)
def test_refusals(shallow_run, bitext_dir, tmp_path, capsys, options, problem):
    options = [bitext_dir if option == "BITEXT" else option for option in options]
    assert problem in refused(capsys, "export", shallow_run, "--out", tmp_path / "model", *options)
    assert list(tmp_path.iterdir()) == []
