"""LASER's encoder, decoder and beam search, against equations in NumPy and published numbers."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from numpy_lstm import lstm
from tiny_encoder import packed

from labse_tf.config import BILSTM, ComputeConfig, Config, EncoderConfig, changed
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder, dropout_generators, precision
from labse_tf.systems.laser.config import LaserConfig
from labse_tf.systems.laser.networks import LaserDecoder, previous_tokens
from labse_tf.systems.laser.translators import search

TINY = EncoderConfig(
    network=BILSTM,
    vocab_size=30,
    embedding_size=3,
    hidden_size=8,
    num_layers=2,
    dropout=0.0,
    initializer_range=0.8,
    pooling="max",
)
ROWS = [[5, 6, 7, 8, 9, 10], [11, 12, 0, 0, 0, 0], [13, 0, 0, 0, 0, 0]]


def reference(encoder, ids):
    """The vector of one text without padding, in float64."""
    weights = [variable.numpy().astype(np.float64) for variable in encoder.variables]
    hidden, (forwards, backwards) = weights[0][ids], np.split(np.arange(1, len(weights)), 2)
    for one, other in zip(forwards[::3], backwards[::3], strict=True):
        forward, backward = weights[one : one + 3], weights[other : other + 3]
        directions = zip((forward, backward), (1, -1), strict=True)
        hidden = np.concatenate(
            [
                lstm(hidden[::way] @ kernel + bias, recurrent)[::way]
                for (kernel, recurrent, bias), way in directions
            ],
            axis=1,
        )
    return hidden.max(axis=0)


def test_the_vectors_are_those_of_the_equations_whatever_the_padding():
    encoder = build_encoder(TINY)
    found = encoder(packed(ROWS))
    expected = np.stack([reference(encoder, [i for i in row if i]) for row in ROWS])
    np.testing.assert_allclose(found["pooled_output"], expected, atol=1e-6)
    # A row of padding would be the least float32, which makes infinities and NaN of what follows.
    pooled = encoder(packed([ROWS[1][:2], [0, 0]]))["pooled_output"].numpy()
    np.testing.assert_allclose(pooled, [expected[1], np.zeros(8)], atol=1e-6)
    assert found["sequence_output"].shape == (3, 6, 8)
    assert [one.shape for one in found["encoder_outputs"]] == [(3, 6, 8)] * 2


def test_weights_begin_apart_and_dropout_is_between_the_layers_alone():
    drawn = [variable.numpy().ravel()[:3] for variable in build_encoder(TINY).variables]
    assert len(np.unique(np.round(drawn, 5), axis=0)) == len(drawn)
    assert np.abs(drawn).max() <= TINY.initializer_range
    for layers in (1, 2):
        config = dataclasses.replace(TINY, num_layers=layers, dropout=0.5)
        encoder = build_encoder(config, replayable=True)
        trained, still = (
            encoder(packed(ROWS), training=training)["pooled_output"] for training in (True, False)
        )
        assert (np.abs(trained - still).max() > 0.01) == (layers > 1)
        assert len(dropout_generators(encoder)) == layers - 1


def test_sizes_that_do_not_fit_are_refused():
    for changes, message in (
        ({"num_layers": 0}, "'encoder.num_layers' is 0"),
        ({"hidden_size": 7}, "'encoder.hidden_size' is 7.*even"),
        ({"averaging_start": True}, "'encoder.averaging_start' is True"),
        ({"network": "bert", "embedding_size": 0}, "'encoder.pooling' is 'max'"),
        ({"network": "bert", "pooling": "cls"}, "'encoder.embedding_size' is 3"),
    ):
        changes = {f"encoder.{key}": value for key, value in changes.items()}
        with pytest.raises(InputError, match=message):
            changed(Config(encoder=TINY), changes)


END = 2


def build(config, *, vocab_size=9, token_size=4, dim=6, **kwargs):
    decoder = LaserDecoder(config, vocab_size=vocab_size, token_size=token_size, **kwargs)
    decoder((tf.zeros([1, dim]), tf.zeros([1], tf.int32), tf.ones([1, 2], tf.int32)))
    return decoder


def weights_of(decoder):
    return {v.name.split(":")[0]: v.numpy().astype(np.float64) for v in decoder.variables}


@pytest.mark.parametrize("rescale", [False, True])
def test_logits_are_those_of_the_equations(rescale):
    sizes = {"decoder_size": 5, "language_size": 3, "output_size": 4}
    decoder = build(LaserConfig(initializer_range=0.9, **sizes), rescale=rescale)
    targets = np.array([[4, 5, 6, END], [7, END, 0, 0]])
    vectors = np.random.default_rng(1).normal(size=(2, 6)).astype(np.float32)
    languages = np.array([1, 0])
    previous = previous_tokens(tf.constant(targets, tf.int32), END)
    np.testing.assert_array_equal(previous, [[END, 4, 5, 6], [END, 7, END, 0]])
    inputs = (tf.constant(vectors), tf.constant(languages, tf.int32), previous)
    found = decoder.logits(decoder(inputs)).numpy()
    w = weights_of(decoder)
    if rescale:
        vectors *= np.sqrt(6) / np.linalg.norm(vectors, axis=1, keepdims=True)
    for row in range(2):
        context = np.concatenate([vectors[row], w["decoder/languages/embeddings"][languages[row]]])
        tokens = w["decoder/word_embeddings/embeddings"][previous[row]]
        # One kernel for token, vector and language, as in the paper.
        kernel = np.concatenate([w["decoder/of_tokens/kernel"], w["decoder/of_context/kernel"]])
        read = np.concatenate([tokens, np.tile(context, (len(tokens), 1))], axis=1)
        start = vectors[row] @ w["decoder/start/kernel"] + w["decoder/start/bias"]
        states = lstm(
            read @ kernel + w["decoder/of_tokens/bias"],
            w["decoder/lstm/cell/recurrent_kernel"],
            np.split(start, 2),
        )
        below = states @ w["decoder/below/kernel"] + w["decoder/below/bias"]
        expected = below @ w["decoder/output/word_embeddings"].T + w["decoder/output/bias"]
        np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_the_numbers_of_weights_are_lasers():
    """Section 3's sizes. PyTorch's LSTMs have two biases a gate, of which one is the sum."""
    sizes = dataclasses.replace(TINY, embedding_size=320, hidden_size=1024, num_layers=5)
    encoder = build_encoder(sizes)
    table = encoder.get_embedding_table().shape.num_elements()
    assert encoder.count_params() - table + 5 * 2 * 4 * 512 == 28_614_656
    decoder = build(LaserConfig(), vocab_size=50, token_size=320, dim=1024)
    sizes = {name: weight.size for name, weight in weights_of(decoder).items()}
    parts = ("of_tokens/kernel", "of_tokens/bias", "of_context/kernel")
    total = sum(sizes[f"decoder/{part}"] for part in (*parts, "lstm/cell/recurrent_kernel"))
    assert total + 4 * 2048 == 28_065_792
    assert sizes["decoder/start/kernel"] + sizes["decoder/start/bias"] == 4_198_400
    assert sizes["decoder/below/kernel"] == 2048 * 512


def test_bfloat16_keeps_the_logits_in_float32():
    with precision(ComputeConfig(precision="bfloat16")):
        decoder = build(LaserConfig(decoder_size=5, language_size=3, output_size=4))
    states = decoder((tf.ones([1, 6]), tf.zeros([1], tf.int32), tf.ones([1, 2], tf.int32)))
    assert states.dtype == tf.bfloat16 and decoder.logits(states).dtype == tf.float32


VOCAB, MOST = 5, 3


def test_a_wide_beam_finds_what_an_exhaustive_search_finds():
    tf_keras.utils.set_random_seed(5)
    config = LaserConfig(decoder_size=6, language_size=2, output_size=4, initializer_range=1.5)
    decoder = build(config, vocab_size=VOCAB, token_size=3, dim=4)
    vectors = np.random.default_rng(7).normal(size=(3, 4)).astype(np.float32)
    languages = tf.constant([0, 1, 1])
    # All translations of up to MOST tokens, END included.
    others = [token for token in range(VOCAB) if token != END]
    all_ = [
        (*tokens, END)
        for length in range(MOST)
        for tokens in itertools.product(others, repeat=length)
    ]
    # By `call`, where the search goes by `step`; what follows END is read and does not count.
    ids = np.array([[*one, *[END] * (MOST - len(one))] for one in all_], np.int32)
    is_token = np.arange(MOST) < np.array([[len(one)] for one in all_])
    options = {"end_token": END, "beam_size": 64, "most": MOST}
    found, scores = search(decoder, decoder.start(vectors, languages), **options)
    for row, vector in enumerate(vectors):
        inputs = (np.tile(vector, [len(ids), 1]), tf.fill([len(ids)], languages[row]))
        logits = decoder.logits(decoder((*inputs, previous_tokens(tf.constant(ids), END))))
        logs = np.take_along_axis(tf.nn.log_softmax(logits).numpy(), ids[..., None], 2)[..., 0]
        expected = (logs * is_token).sum(axis=1)
        expected /= ((5 + is_token.sum(axis=1)) / 6) ** 0.6
        best, tokens = np.argmax(expected), list(found[row, 0].numpy())
        assert tuple(tokens[: tokens.index(END) + 1]) == all_[best]
        np.testing.assert_allclose(scores[row, 0], expected[best], atol=1e-5)
