"""Progressive stacking: depths, and whose weights a deep encoder's layers are."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_encoder import packed

from labse_tf.config import EncoderConfig
from labse_tf.model.encoder import build_encoder
from labse_tf.model.stacking import grow_vocabulary, stack, stage_depths
from vocab.wordpiece import WordPiece

CONFIG = EncoderConfig(
    vocab_size=50,
    hidden_size=8,
    num_layers=4,
    num_attention_heads=2,
    intermediate_size=16,
    max_positions=8,
    dropout=0.0,
)
# Parameters by hand: embeddings (50 words, 8 positions, 2 types, layer norm) * 8; a layer: 4
# projections with bias, two layer norms, 8 x 16 and 16 x 8 with bias; the pooler.
EMBEDDINGS = (50 + 8 + 2 + 2) * 8
LAYER = 4 * (8 * 8 + 8) + 2 * 2 * 8 + (8 * 16 + 16) + (16 * 8 + 8)
POOLER = 8 * 8 + 8


@pytest.fixture
def inputs():
    return packed([[1, 7, 9, 2, 0], [1, 30, 2, 0, 0]])


def randomise(encoder, seed):
    generator = np.random.default_rng(seed)
    encoder.set_weights([generator.normal(0, 0.5, w.shape) for w in encoder.get_weights()])
    return encoder


@pytest.mark.parametrize(
    "layers, stages, depths",
    [
        (12, 3, [3, 6, 12]),
        (24, 3, [6, 12, 24]),
        (4, 3, [1, 2, 4]),
        (4, 1, [4]),
        (6, 2, [3, 6]),
        (3, 1, [3]),
    ],
)
def test_stage_depths(layers, stages, depths):
    assert stage_depths(layers, stages) == depths


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_an_encoder_has_the_parameters_counted_by_hand(layers):
    encoder = build_encoder(CONFIG, num_layers=layers)
    count = sum(int(np.prod(variable.shape)) for variable in encoder.trainable_variables)
    assert count == EMBEDDINGS + layers * LAYER + POOLER


@pytest.mark.parametrize("shallow_depth, deep_depth", [(1, 2), (2, 4), (1, 4), (2, 2)])
def test_layer_i_plus_n_is_layer_i(shallow_depth, deep_depth):
    shallow = randomise(build_encoder(CONFIG, num_layers=shallow_depth), 1)
    deep = build_encoder(CONFIG, num_layers=deep_depth)
    stack(shallow, deep)
    assert len(deep.transformer_layers) == deep_depth
    for index, layer in enumerate(deep.transformer_layers):
        source = shallow.transformer_layers[index % shallow_depth]
        assert len(layer.get_weights()) == len(source.get_weights()) == 16
        for found, expected in zip(layer.get_weights(), source.get_weights(), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_embeddings_and_pooler_are_copied(inputs):
    shallow = randomise(build_encoder(CONFIG, num_layers=2), 1)
    deep = randomise(build_encoder(CONFIG, num_layers=4), 2)
    stack(shallow, deep)
    np.testing.assert_array_equal(deep.get_embedding_table(), shallow.get_embedding_table())
    shallow_names, deep_names = (
        {
            v.name: v.numpy()
            for v in encoder.variables
            if "embedding" in v.name or "pooler" in v.name
        }
        for encoder in (shallow, deep)
    )
    # Words, positions, types, two of the layer norm, two of the pooler.
    assert len(shallow_names) == 7
    for name, value in shallow_names.items():
        np.testing.assert_array_equal(deep_names[name], value)
    # As far as the shallow one goes both compute the same.
    for found, expected in zip(
        deep(inputs)["encoder_outputs"][:2], shallow(inputs)["encoder_outputs"], strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_deep_encoder_applies_the_shallow_layers_twice(inputs):
    """Feeding a 1-layer encoder's layer its own output gives what the stacked encoder gives."""
    shallow = randomise(build_encoder(CONFIG, num_layers=1), 1)
    deep = build_encoder(CONFIG, num_layers=2)
    stack(shallow, deep)
    once = shallow(inputs)["sequence_output"]
    mask = tf.cast(inputs["input_mask"], tf.float32)[:, tf.newaxis, :] * tf.ones((2, 5, 1))
    twice = shallow.transformer_layers[0]([once, mask])
    np.testing.assert_allclose(deep(inputs)["sequence_output"], twice, atol=1e-5)


def test_the_deep_copy_is_no_alias():
    shallow = randomise(build_encoder(CONFIG, num_layers=2), 1)
    deep = build_encoder(CONFIG, num_layers=4)
    stack(shallow, deep)
    before = [w.copy() for w in shallow.get_weights()]
    randomise(deep, 5)
    for found, expected in zip(shallow.get_weights(), before, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_refusals():
    two = build_encoder(CONFIG, num_layers=2)
    with pytest.raises(ValueError, match="3 layers cannot be stacked from 2 layers"):
        stack(two, build_encoder(CONFIG, num_layers=3))
    wider = EncoderConfig(**{**CONFIG.__dict__, "vocab_size": 60})
    with pytest.raises(ValueError):
        stack(two, build_encoder(wider, num_layers=4))


# Rows for another vocabulary: sums of the old pieces, so that sentences keep their vectors.

OLD = ["[UNK]", "[CLS]", "a", "b", "##a", "##b", "ab", "##ba", "ไท", "##ย"]
TABLE = np.random.default_rng(0).normal(size=(len(OLD), 3)).astype(np.float32)


@pytest.mark.parametrize("mean", [False, True])
def test_pieces_by_hand(mean):
    spelled = {
        "[CLS]": ["[CLS]"],
        "ab": ["ab"],
        "abba": ["ab", "##ba"],
        "aab": ["a", "##a", "##b"],
        "##abab": ["##a", "##ba", "##b"],
        "ไทย": ["ไท", "##ย"],
        "##c": ["[UNK]"],
        "abc": ["[UNK]"],
        "##": ["[UNK]"],
        "[MASK]": ["[UNK]"],
    }
    rows = grow_vocabulary(TABLE, OLD, list(spelled), mean=mean)
    for row, pieces in zip(rows, spelled.values(), strict=True):
        expected = sum(TABLE[OLD.index(piece)] for piece in pieces) / (len(pieces) if mean else 1)
        np.testing.assert_allclose(row, expected, atol=1e-6)


@given(words=st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=5))
@settings(max_examples=50)
def test_whole_words_keep_the_sum_of_any_sentence(words):
    new = list(dict.fromkeys([*OLD, *words]))
    rows = grow_vocabulary(TABLE, OLD, new, mean=False)
    sums = []
    for tokens, table in ((OLD, TABLE), (new, rows)):
        pieces = WordPiece(tokens, max_bytes_per_word=100).tokenize(" ".join(words))
        sums.append(table[[tokens.index(piece) for piece in pieces]].sum(axis=0))
    np.testing.assert_allclose(sums[1], sums[0], atol=1e-5)
