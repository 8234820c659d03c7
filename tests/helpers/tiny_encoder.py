"""A tiny encoder and its inputs, for tests that work with token ids."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from labse_tf.config import EncoderConfig

TINY_ENCODER = EncoderConfig(
    vocab_size=40,
    hidden_size=8,
    num_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_positions=16,
    dropout=0.0,
    initializer_range=0.3,
    pooling="mean",
)


def packed(rows):
    """Inputs of token ids, `[batch, length]`, of which 0 is padding."""
    ids = np.array(rows, np.int32)
    inputs = {
        "input_word_ids": ids,
        "input_mask": (ids > 0).astype(np.int32),
        "input_type_ids": np.zeros_like(ids),
    }
    return {name: tf.constant(values) for name, values in inputs.items()}
