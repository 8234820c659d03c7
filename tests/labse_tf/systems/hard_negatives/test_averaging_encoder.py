"""The deep averaging network: against NumPy, by hand, and trained lazily as densely."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tiny_encoder import packed
from trainers import make_trainer

from labse_tf.config import EncoderConfig, TrainConfig
from labse_tf.systems.hard_negatives.averaging_encoder import AveragingEncoder
from labse_tf.training.objectives import DualEncoder
from labse_tf.training.optimizer import LazyAdamW

SMALL = EncoderConfig(
    vocab_size=110, hidden_size=6, num_layers=2, num_attention_heads=1, dropout=0.0
)


def randomised(config, buckets=50):
    """An encoder without a zero in its weights, which are close to 1 for the norms' scales."""
    tf_keras.utils.set_random_seed(1)
    encoder = AveragingEncoder(config, bigram_buckets=buckets)
    random = np.random.default_rng(1)
    for variable in encoder.trainable_variables:
        variable.assign_add(random.normal(size=variable.shape, scale=0.3).astype(np.float32))
    return encoder


def reference(encoder, layers, buckets, tokens):
    """One sentence, loops and float64."""
    weights = {v.name.removesuffix(":0"): v.numpy().astype(float) for v in encoder.variables}

    def weight(name):
        return next(value for key, value in weights.items() if key.endswith(name))

    def norm(x, layer):
        normal = (x - x.mean()) / math.sqrt(x.var() + 1e-6)
        return normal * weight(f"layer_norm_{layer}/gamma") + weight(f"layer_norm_{layer}/beta")

    def dense(x, name):
        return x @ weight(f"{name}/kernel") + weight(f"{name}/bias")

    table, rows = weight("word_embeddings"), list(tokens)
    for left, right in zip(tokens, tokens[1:], strict=False):
        mixed = (left * 2654435761 + right * 2246822519) % 2**32
        rows.append(110 + (mixed ^ (mixed >> 15)) % buckets)
    hidden = sum(table[row] for row in rows) / math.sqrt(len(tokens))
    for layer in range(layers):
        x = dense(norm(hidden, layer), f"dense_{layer}")
        hidden = hidden + np.array([v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x])
    return dense(norm(hidden, layers), "pooler")


@pytest.mark.parametrize(("layers", "buckets"), [(2, 50), (0, 50), (1, 1)])
def test_it_computes_what_the_docstring_says(layers, buckets):
    encoder = randomised(dataclasses.replace(SMALL, num_layers=layers), buckets)
    sentences = [101, 7, 8, 8, 102], [101, 102], [101, 8, 7, 102], [109]
    found = encoder(packed([row + [0] * (7 - len(row)) for row in sentences]))["pooled_output"]
    assert found.dtype == tf.float32 and found.shape == (4, 6)
    for row, tokens in enumerate(sentences):
        expected = reference(encoder, layers, buckets, tokens)
        np.testing.assert_allclose(found[row], expected, atol=1e-5)


def test_lazy_training_is_dense_training():
    """So `rows` names every row, those of bigrams too."""
    sides = np.random.default_rng(3).integers(5, 100, [2, 3, 4, 5], dtype=np.int32)
    batches = {
        name: {"input_word_ids": side, "input_mask": np.ones_like(side)}
        for name, side in zip(("source", "target"), sides, strict=True)
    }
    batches["keys"] = np.tile(np.arange(8, dtype=np.int32).reshape(4, 2), [3, 1, 1])
    results = []
    for lazy in (True, False):
        encoder = randomised(SMALL)
        trainer = make_trainer(
            DualEncoder(encoder, TrainConfig(margin=0.3, scale=10.0)),
            tf.data.Dataset.from_tensor_slices(batches),
            LazyAdamW(0.05, steps=3, weight_decay=0.1),
            clip_norm=1.0,
            lazy_embeddings=lazy,
        )
        trainer.train(tf.constant(3))
        results.append(encoder.get_weights())
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-4)
