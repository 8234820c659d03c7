"""A vocabulary of byte-pair encodings through the commands: learned, trained with, exported."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from tiny_text import SENTENCES, sentences_of

import labse_tf
from labse_tf.cli.main import main
from labse_tf.tokenization.byte_pairs import BpeTokenizer, open_tokenizer
from labse_tf.tokenization.wordpiece import WordPieceTokenizer
from vocab import bpe, wordpiece_file


@pytest.fixture(scope="module")
def bpe_file(bitext_dir, tmp_path_factory):
    out = tmp_path_factory.mktemp("bpe") / "bpe.txt"
    assert main(["vocab", "bpe", str(bitext_dir), "--out", str(out), "--vocab-size", "500"]) == 0
    return out


def test_it_splits_as_sentencepiece(bpe_file):
    tokenizer = open_tokenizer(bpe_file, max_bytes_per_word=600)
    assert isinstance(tokenizer, BpeTokenizer)
    processor = sentencepiece.SentencePieceProcessor(model_proto=bpe.model_of(tokenizer.tokens))
    texts = [*SENTENCES, "", "  two  spaces ", "Katze und Haus."]
    assert tokenizer(tf.constant(texts)).to_list() == processor.encode(texts)
    # Other spaces are spaces.
    two = tokenizer(tf.constant(["cat\u00a0and house.", "cat and\u3000house."])).to_list()
    assert two[0] == two[1] == processor.encode("cat and house.")
    for text in (sentences_of("ja")[0], "Katze und Haus.", sentences_of("th")[3]):
        ids = tokenizer(tf.constant([text])).to_list()[0]
        assert tokenizer.join(tokenizer.tokens[one] for one in ids) == text


def test_wordpieces_are_opened_as_such(vocab_file):
    assert isinstance(open_tokenizer(vocab_file, max_bytes_per_word=600), WordPieceTokenizer)


@pytest.mark.slow
def test_training_and_export(config_file, bpe_file, tmp_path, multilingual_sentences, capsys):
    """Checked by `labse verify`."""
    run_dir, out = tmp_path / "run", tmp_path / "model"
    sets = [f"tokenizer.vocab_file={bpe_file}", "encoder.num_layers=0", "train.steps=2"]
    options = [word for one in sets for word in ("--set", one)]
    assert main(["train", str(config_file), "--run-dir", str(run_dir), *options]) == 0
    assert main(["export", str(run_dir), "--out", str(out), "--format", "hub,text"]) == 0
    facts = json.loads((out / "model.json").read_text("utf-8"))
    assert facts["tokenizer"] == "bpe"
    assert "cased byte-pair encodings" in (out / "README.md").read_text("utf-8")
    asset = out / "encoder" / "assets" / "vocab.txt"
    assert wordpiece_file.read(asset) == wordpiece_file.read(bpe_file)
    # The table that is read directly, and the SavedModel from strings to vectors.
    found = labse_tf.load(out).encode(multilingual_sentences)
    text_encoder = tf.saved_model.load(str(out / "text_encoder"))
    np.testing.assert_allclose(found, text_encoder(tf.constant(multilingual_sentences)), atol=1e-5)
    more = tmp_path / "more"
    assert main(["export", str(run_dir), "--out", str(more), "--format", "hub,hf"]) == 2
    assert "byte-pair encodings cannot be written in the format hf" in capsys.readouterr().err
    command = ["export", str(run_dir), "--out", str(more), "--languages", "en,de"]
    assert main(command) == 2
    assert "byte-pair encodings" in capsys.readouterr().err
