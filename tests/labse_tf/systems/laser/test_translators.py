"""Beam search against an exhaustive search, and runs that cannot translate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from labse_tf.errors import InputError
from labse_tf.systems.laser.config import LaserConfig
from labse_tf.systems.laser.decoder import LaserDecoder
from labse_tf.systems.laser.translators import open_translator, search

END, VOCAB, MOST = 2, 5, 4


@pytest.fixture(scope="module")
def decoder():
    tf_keras.utils.set_random_seed(5)
    config = LaserConfig(decoder_size=6, language_size=2, output_size=4, initializer_range=1.5)
    made = LaserDecoder(config, vocab_size=VOCAB, token_size=3)
    made((tf.zeros([1, 4]), tf.zeros([1], tf.int32), tf.ones([1, 2], tf.int32)))
    return made


VECTORS = np.random.default_rng(7).normal(size=(3, 4)).astype(np.float32)
LANGUAGES = tf.constant([0, 1, 1])


def log_likelihood(decoder, row, tokens):
    """Of all tokens, given those before: by `call`, where the search goes by `step`."""
    previous = tf.constant([[END, *tokens[:-1]]])
    inputs = (VECTORS[row : row + 1], LANGUAGES[row : row + 1], previous)
    logs = tf.nn.log_softmax(decoder.logits(decoder(inputs)))[0].numpy()
    return sum(logs[place, token] for place, token in enumerate(tokens))


def finished():
    """All translations of up to MOST tokens, END included."""
    others = [token for token in range(VOCAB) if token != END]
    for length in range(1, MOST + 1):
        for tokens in itertools.product(others, repeat=length - 1):
            yield (*tokens, END)


@pytest.mark.parametrize("penalty", [0.0, 0.6])
def test_a_wide_beam_finds_what_an_exhaustive_search_finds(decoder, penalty):
    state = decoder.start(VECTORS, LANGUAGES)
    ids, scores = search(
        decoder, state, end_token=END, beam_size=64, most=MOST, length_penalty=penalty
    )
    for row in range(len(VECTORS)):
        expected = {
            one: log_likelihood(decoder, row, one) / ((5 + len(one)) / 6) ** penalty
            for one in finished()
        }
        best = max(expected, key=expected.get)
        found = ids[row, 0].numpy()
        assert tuple(found[: list(found).index(END) + 1]) == best
        np.testing.assert_allclose(scores[row, 0], expected[best], atol=1e-5)


def test_a_beam_of_one_goes_one_way(decoder):
    """The likeliest token each time; it ends where END, first or second, scores best."""
    state = decoder.start(VECTORS, LANGUAGES)
    ids, scores = search(decoder, state, end_token=END, beam_size=1, most=MOST, length_penalty=0.0)
    for row in range(len(VECTORS)):
        way = []
        while len(way) < MOST:
            others = [token for token in range(VOCAB) if token != END]
            way.append(max(others, key=lambda one: log_likelihood(decoder, row, (*way, one))))
        found = [int(one) for one in ids[row, 0]]
        length = found.index(END) if END in found else len(found)
        assert found[:length] == way[:length]
        likelihood = log_likelihood(decoder, row, found[: length + 1])
        np.testing.assert_allclose(scores[row, 0], likelihood, atol=1e-5)


def test_a_run_without_a_decoder_is_refused(trained_run):
    with pytest.raises(InputError, match="the run trained no translator; name a run of"):
        open_translator(trained_run)
