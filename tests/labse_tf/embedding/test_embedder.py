"""`labse_tf.load(...).encode(...)`: the normalised `default`, in order, whatever the neighbours."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401

import labse_tf
from labse_tf.embedding.embedder import Embedder
from labse_tf.errors import InputError


@pytest.fixture(scope="module")
def embedder(model_dir):
    return labse_tf.load(model_dir)


@pytest.fixture(scope="module")
def reference(model_dir):
    """Straight through both SavedModels at the full length, one text at a time."""
    preprocessor = tf.saved_model.load(str(model_dir / "preprocessor"))
    encoder = tf.saved_model.load(str(model_dir / "encoder"))

    def encode(texts):
        rows = [encoder(preprocessor(tf.constant([text])))["default"] for text in texts]
        return tf.math.l2_normalize(tf.concat(rows, 0), axis=-1).numpy()

    return encode


def test_equals_preprocessor_encoder_and_norm(embedder, reference, multilingual_sentences):
    texts = [*multilingual_sentences, "", " ", "แมว" * 66, "a " * 300]
    found = embedder.encode(texts)
    assert found.dtype == np.float32
    assert found.shape == (len(texts), embedder.dim) == (len(texts), 16)
    np.testing.assert_allclose(found, reference(texts), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)


def test_sentences_differ(embedder, multilingual_sentences):
    """Else the comparisons here would compare one vector with itself."""
    found = embedder.encode(multilingual_sentences)
    distances = np.abs(found[:, None] - found[None]).max(axis=-1)
    assert (distances + np.eye(len(found)) > 1e-4).all()


def test_the_order_of_the_texts_is_kept(embedder, multilingual_sentences):
    texts = list(multilingual_sentences)
    whole = embedder.encode(texts)
    order = list(range(len(texts)))
    random.Random(4).shuffle(order)
    shuffled = embedder.encode([texts[index] for index in order])
    np.testing.assert_allclose(shuffled, whole[order], atol=1e-5)


def test_neighbours_change_nothing(embedder, multilingual_sentences):
    long = "und Größe " * 60
    alone = np.concatenate([embedder.encode([text]) for text in multilingual_sentences])
    together = embedder.encode([long, *multilingual_sentences, long, long])[1:-2]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_more_texts_than_a_batch_and_a_window(embedder, monkeypatch, multilingual_sentences):
    texts = list(multilingual_sentences) * 5
    expected = embedder.encode(texts)
    monkeypatch.setattr(Embedder, "_texts_per_window", 7)
    monkeypatch.setattr(Embedder, "_tokens_per_batch", 64)
    np.testing.assert_allclose(embedder.encode(texts), expected, atol=1e-5)


def test_what_is_cut_is_counted(model_dir):
    embedder = labse_tf.load(model_dir)
    # 128 tokens, [CLS] and [SEP] among them, are not too long.
    embedder.encode(["e " * 126, "e " * 127, "cat"])
    embedder.encode(["e " * 500])
    assert embedder.texts_cut == 2


def test_no_texts(embedder):
    found = embedder.encode([])
    assert found.shape == (0, 16) and found.dtype == np.float32


def test_empty_strings(embedder, reference):
    found = embedder.encode(["", ""])
    np.testing.assert_allclose(found, np.repeat(reference([""]), 2, axis=0), atol=1e-5)


@pytest.mark.parametrize("texts", [("cat", "dog"), np.array(["cat", "dog"])])
def test_any_sequence_of_strings(embedder, texts):
    expected = embedder.encode(["cat", "dog"])
    np.testing.assert_array_equal(embedder.encode(texts), expected)


def test_one_string_is_no_list(embedder):
    with pytest.raises(TypeError, match="a list of strings"):
        embedder.encode("cat")


def test_texts_longer_than_the_model_are_cut(embedder):
    one = embedder.encode(["e " * 126 + "cat"])
    other = embedder.encode(["e " * 126 + "dog and more"])
    np.testing.assert_allclose(one, other, atol=1e-6)
    shorter = embedder.encode(["e " * 100 + "cat", "e " * 100 + "dog"])
    assert np.abs(shorter[0] - shorter[1]).max() > 1e-6


@pytest.mark.parametrize("missing", ["everything", "preprocessor", "encoder", "graph"])
def test_no_model_dir(tmp_path, missing):
    if missing != "everything":
        for name in ("preprocessor", "encoder"):
            (tmp_path / "model" / name).mkdir(parents=True)
            if missing not in (name, "graph"):
                (tmp_path / "model" / name / "saved_model.pb").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        labse_tf.load(tmp_path / "model")
    assert caught.value.path == str(tmp_path / "model")
    absent = "encoder" if missing == "encoder" else "preprocessor"
    assert f"has no {absent}/saved_model.pb" in caught.value.problem


# The facts beside the models.


def test_model_json(model_dir, trained_run, vocab_file):
    facts = json.loads((model_dir / "model.json").read_text("utf-8"))
    assert facts["sequence_length"] == 128
    assert facts["max_bytes_per_word"] == 600
    assert facts["encoder"]["hidden_size"] == 16 and facts["encoder"]["num_layers"] == 2
    assert facts["vocabulary"]["tokens"] == len(vocab_file.read_text("utf-8").splitlines())
    assert facts["training"]["checkpoint"] == "ckpt-4" and facts["training"]["steps"] == 4
    assert facts["training"]["margin"] == 0.3 and facts["training"]["scale"] == 10.0
    last = json.loads((trained_run / "metrics.jsonl").read_text().splitlines()[-1])
    assert facts["training"]["loss"] == last["loss"]


def test_model_card(model_dir):
    card = (model_dir / "README.md").read_text("utf-8")
    # An empty `languages` means those that the corpora hold, not none.
    assert "0 languages" not in card
    assert "2 layers, 16 wide, 2 heads" in card
    assert "4 steps of 8 pairs, additive margin softmax with margin 0.3 and scale 10.0" in card
    assert "{" not in card
