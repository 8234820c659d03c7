"""Retrieval on dev pairs while training: the evaluator against NumPy, sentence by sentence."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf
from text_files import write_lines
from tiny_text import FOREIGN, sentences_of

from labse_tf.evaluation.tasks import retrieval
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.training import validation
from labse_tf.training.validation import DevEvaluator

LENGTHS = [8, 16, 24]


@pytest.fixture(scope="module")
def encoder(tiny_config):
    """Weights large enough that sentences lie apart."""
    encoder = build_encoder(tiny_config.encoder, num_layers=1)
    generator = np.random.default_rng(3)
    encoder.set_weights(
        [w if w.ndim == 1 else generator.normal(0, 0.5, w.shape) for w in encoder.get_weights()]
    )
    return encoder


# Pools of different sizes; the English sentences come again and again.
PAIRS = {
    language: list(zip(sentences_of("en"), sentences_of(language), strict=True))[: 4 + index]
    for index, language in enumerate(FOREIGN)
}
POOLS = {
    language: [(source.encode(), target.encode()) for source, target in pairs]
    for language, pairs in PAIRS.items()
}


@pytest.fixture
def evaluator(encoder, tokenizer):
    made = {"strategy": tf.distribute.get_strategy(), "encoder": encoder, "tokenizer": tokenizer}
    return DevEvaluator(**made, pools=POOLS, lengths=LENGTHS)


@pytest.fixture(scope="module")
def one_by_one(encoder, tokenizer):
    """Embeds each sentence alone, without padding, cut to the longest of LENGTHS."""

    @functools.cache
    def vector(text):
        tokens = tokenizer(tf.constant([text]))
        length = min(int(tokens.row_lengths()[0]) + 2, LENGTHS[-1])
        return embed(encoder, tokenizer.pack([tokens], length), training=False)[0]

    return lambda texts: np.stack([vector(text) for text in texts])


def test_each_sentence_is_embedded_once_in_order(evaluator, one_by_one, monkeypatch):
    monkeypatch.setattr(validation, "_TOKENS_PER_BATCH", 60)
    sentences = list(dict.fromkeys(text for pool in POOLS.values() for p in pool for text in p))
    assert len(sentences) == 9 + sum(range(4, 10))
    np.testing.assert_allclose(evaluator.embed_all(), one_by_one(sentences), atol=2e-5)


def test_it_measures_what_labse_eval_measures(evaluator, one_by_one, tmp_path):
    for language, pairs in PAIRS.items():
        write_lines(tmp_path / f"{language}.tsv", map("\t".join, pairs))

    class Encoder:
        def encode(self, texts):
            return one_by_one([text.encode() for text in texts])

    expected = retrieval.evaluate(Encoder(), tmp_path)
    (measured,) = evaluator.evaluate(tf.constant(1)).values()
    assert set(measured["by_language"]) == set(FOREIGN)
    assert measured["pairs"] == sum(range(4, 10))
    for language, found in measured["by_language"].items():
        scores = expected["languages"][language]["model"]
        mean = pytest.approx(np.mean(list(scores.values())), abs=1e-6)
        pairs = expected["languages"][language]["pairs"]
        assert found == {**scores, "accuracy": mean, "pairs": pairs}
    scores = expected["average"]["model"]
    for direction, score in scores.items():
        assert measured[direction] == pytest.approx(score, 1e-5)
    assert 0 < measured["accuracy"] == pytest.approx(np.mean(list(scores.values())), abs=1e-5)
