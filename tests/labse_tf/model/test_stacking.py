"""Progressive stacking: depths, and whose weights a deep encoder's layers are."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tiny_encoder import TINY_ENCODER, packed

from labse_tf.model.encoder import build_encoder
from labse_tf.model.stacking import grow_vocabulary, stack, stage_depths


def randomise(encoder, seed):
    generator = np.random.default_rng(seed)
    encoder.set_weights([generator.normal(0, 0.5, w.shape) for w in encoder.get_weights()])
    return encoder


def test_layer_i_plus_n_is_layer_i_and_all_else_is_copied():
    assert [stage_depths(12, 3), stage_depths(4, 1)] == [[3, 6, 12], [4]]
    shallow = randomise(build_encoder(TINY_ENCODER, num_layers=2), 1)
    deep = randomise(build_encoder(TINY_ENCODER, num_layers=4), 2)
    stack(shallow, deep)
    assert len(deep.transformer_layers) == 4
    inputs = packed([[1, 7, 9, 2, 0], [1, 30, 2, 0, 0]])
    for index, layer in enumerate(deep.transformer_layers):
        source = shallow.transformer_layers[index % 2].get_weights()
        assert len(layer.get_weights()) == len(source) == 16
        for found, expected in zip(layer.get_weights(), source, strict=True):
            np.testing.assert_array_equal(found, expected)
    outside = [
        {v.name: v.numpy() for v in one.variables if "embedding" in v.name or "pooler" in v.name}
        for one in (shallow, deep)
    ]
    # Words, positions, types, two of the layer norm, two of the pooler.
    assert len(outside[0]) == 7
    tf.nest.map_structure(np.testing.assert_array_equal, *outside)
    # Up to the depth of the shallow encoder both compute the same; then the layers come again.
    states, expected = (list(one(inputs)["encoder_outputs"]) for one in (deep, shallow))
    mask = tf.cast(inputs["input_mask"], tf.float32)[:, tf.newaxis, :] * tf.ones((2, 5, 1))
    expected.append(shallow.transformer_layers[0]([expected[-1], mask]))
    for one, other in zip(states, expected, strict=False):
        np.testing.assert_allclose(one, other, atol=1e-5)
    # The copy is no alias.
    before = [weights.copy() for weights in shallow.get_weights()]
    randomise(deep, 5)
    tf.nest.map_structure(np.testing.assert_array_equal, shallow.get_weights(), before)


def test_encoders_that_differ_otherwise_are_refused():
    two = build_encoder(TINY_ENCODER, num_layers=2)
    with pytest.raises(ValueError, match="3 layers cannot be stacked from 2 layers"):
        stack(two, build_encoder(TINY_ENCODER, num_layers=3))
    with pytest.raises(ValueError, match="more than their depth"):
        stack(two, build_encoder(dataclasses.replace(TINY_ENCODER, vocab_size=60), num_layers=4))


# Rows for another vocabulary: sums of the old pieces, so that sentences keep their vectors.

OLD = ["[UNK]", "[CLS]", "a", "b", "##a", "##b", "ab", "##ba", "ไท", "##ย"]
TABLE = np.random.default_rng(0).normal(size=(len(OLD), 3)).astype(np.float32)


@pytest.mark.parametrize("mean", [False, True])
def test_pieces_by_hand(mean):
    spelled = {"[CLS]": "[CLS]", "ab": "ab", "abba": "ab ##ba", "aab": "a ##a ##b"}
    spelled |= {"##abab": "##a ##ba ##b", "ไทย": "ไท ##ย"}
    spelled |= dict.fromkeys(("##c", "abc", "##", "[MASK]"), "[UNK]")
    rows = grow_vocabulary(TABLE, OLD, list(spelled), mean=mean)
    for row, pieces in zip(rows, spelled.values(), strict=True):
        parts = [TABLE[OLD.index(piece)] for piece in pieces.split()]
        expected = sum(parts) / (len(parts) if mean else 1)
        np.testing.assert_allclose(row, expected, atol=1e-6)
