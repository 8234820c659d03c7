"""LASER's decoder, against its equations in NumPy and the published numbers of weights."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from numpy_lstm import lstm

from labse_tf.systems.laser.config import LaserConfig
from labse_tf.systems.laser.decoder import LaserDecoder, previous_tokens

START = 2


def build(config, *, vocab_size=9, token_size=4, dim=6, **kwargs):
    decoder = LaserDecoder(config, vocab_size=vocab_size, token_size=token_size, **kwargs)
    decoder((tf.zeros([1, dim]), tf.zeros([1], tf.int32), tf.ones([1, 2], tf.int32)))
    return decoder


def weights_of(decoder):
    return {v.name.split(":")[0]: v.numpy().astype(np.float64) for v in decoder.variables}


@pytest.mark.parametrize("rescale", [False, True])
def test_logits_are_those_of_the_equations(rescale):
    sizes = {"decoder_size": 5, "language_size": 3, "output_size": 4}
    config = LaserConfig(targets=["en", "es"], initializer_range=0.9, **sizes)
    decoder = build(config, rescale=rescale)
    targets = np.array([[4, 5, 6, START], [7, START, 0, 0]])
    vectors = np.random.default_rng(1).normal(size=(2, 6)).astype(np.float32)
    languages = np.array([1, 0])
    previous = previous_tokens(tf.constant(targets, tf.int32), START)
    np.testing.assert_array_equal(previous, [[START, 4, 5, 6], [START, 7, START, 0]])
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
    """An LSTM of PyTorch has a second bias, which is one too many."""
    decoder = build(LaserConfig(), vocab_size=50, token_size=320, dim=1024)
    sizes = {name: weight.size for name, weight in weights_of(decoder).items()}
    parts = ("of_tokens/kernel", "of_tokens/bias", "of_context/kernel")
    total = sum(sizes[f"decoder/{part}"] for part in (*parts, "lstm/cell/recurrent_kernel"))
    assert total + 4 * 2048 == 28_065_792
    assert sizes["decoder/start/kernel"] + sizes["decoder/start/bias"] == 4_198_400
    assert sizes["decoder/below/kernel"] == 2048 * 512


def test_bfloat16_keeps_the_logits_in_float32():
    from labse_tf.config import ComputeConfig
    from labse_tf.model.encoder import precision

    with precision(ComputeConfig(precision="bfloat16")):
        decoder = build(LaserConfig(decoder_size=5, language_size=3, output_size=4))
    states = decoder((tf.ones([1, 6]), tf.zeros([1], tf.int32), tf.ones([1, 2], tf.int32)))
    assert states.dtype == tf.bfloat16
    assert decoder.logits(states).dtype == tf.float32
    assert {variable.dtype for variable in decoder.variables} == {tf.float32}
