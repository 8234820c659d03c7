"""Tokens' vectors as sums of their own row and of their parts' rows."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from labse_tf.config import EncoderConfig
from labse_tf.model.dropout import dropout_generators
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.model.subwords import Subwords

TOKENS = ["[UNK]", "a", "##b", "ab", "##ba", "abab", "ไท", "ไทย", "##ย"]


def named(subwords, lengths):
    """Each token's parts as (length, token); length 0 is its own row."""
    names = [(0, token) for token in TOKENS]
    for length in lengths:
        short = [token for token in TOKENS if len(token.removeprefix("##")) <= length]
        names += [(length, token) for token in short]
    assert len(names) == subwords.count
    return {
        token: [names[row] for row in rows]
        for token, rows in zip(TOKENS, subwords.rows.to_list(), strict=True)
    }


def test_parts_by_hand():
    parts = named(Subwords(TOKENS, [1, 2]), [1, 2])
    assert parts["a"] == [(0, "a"), (1, "a"), (2, "a")]
    # "##a" is no token: nothing spells "##ba" by single characters.
    assert parts["##ba"] == [(0, "##ba"), (2, "##ba")]
    assert parts["ab"] == [(0, "ab"), (1, "a"), (1, "##b"), (2, "ab")]
    assert parts["abab"] == [(0, "abab")]
    assert parts["ไทย"] == [(0, "ไทย"), (2, "ไท"), (2, "##ย")]
    assert parts["[UNK]"] == [(0, "[UNK]")]


def test_ngrams_by_hand():
    thai = ["ไทย", "##ไทย", "##ไทยย", "##คนไทย"]
    tokens = ["[UNK]", "Haus", "haus", "##haus", "HAUSE", "aus", *thai]
    subwords = Subwords(tokens, [], [3])
    shared = ["^ha", "hau", "aus", "ไทย"]
    names = [*tokens, *shared]
    assert subwords.count == len(names)
    found = [[names[row] for row in rows[1:]] for rows in subwords.rows.to_list()]
    assert found == [
        [],
        ["^ha", "hau", "aus"],
        ["^ha", "hau", "aus"],
        # Inside a word, without its beginning; "aus" at the start of one is "^au", "aus".
        ["hau", "aus"],
        ["^ha", "hau", "aus"],
        ["aus"],
        # "^ไทย" has it; it is the whole of "##ไทย", which its own row is for.
        ["ไทย"],
        [],
        ["ไทย"],
        ["ไทย"],
    ]


def test_splitting_by_hand():
    subwords = Subwords(TOKENS, [2])
    rows, split = subwords.rows.to_list(), subwords.split_rows().to_list()
    ids = {token: row for row, token in enumerate(TOKENS)}
    # 60 % of two characters is one, and of four two; of one, none.
    expected = {
        "[UNK]": ["[UNK]"],
        "a": ["a"],
        "ab": ["a", "##b"],
        "##ba": ["##ba"],
        "abab": ["abab"],
        "ไทย": ["ไท", "##ย"],
    }
    for token, pieces in expected.items():
        wanted = [row for piece in pieces for row in rows[ids[piece]]]
        assert split[ids[token]] == wanted, token


def test_splitting_draws_tokens_anew_at_each_step_and_only_in_training():
    sizes = {"vocab_size": len(TOKENS), "hidden_size": 6, "num_layers": 0}
    config = EncoderConfig(**sizes, subwords=[2], split_rate=0.5)
    subwords = Subwords(TOKENS, [2])
    encoder = build_encoder(config, subwords=subwords, replayable=True)
    [generator] = dropout_generators(encoder)
    table = encoder.get_embedding_table().numpy()
    ids = tf.constant([[0, 3, 0], [0, 7, 0]])
    inputs = {"input_word_ids": ids, "input_mask": tf.ones_like(ids), "input_type_ids": 0 * ids}
    rows, split = subwords.rows.to_list(), subwords.split_rows().to_list()
    either = [[table[which[token]].sum(axis=0) for which in (rows, split)] for token in (3, 7)]
    plain = encoder(inputs, training=False)["pooled_output"]
    np.testing.assert_allclose(plain, [one[0] for one in either], atol=1e-6)
    seen = set()
    state = generator.state.numpy()
    for _ in range(40):
        found = encoder(inputs, training=True)["pooled_output"].numpy()
        drawn = [
            [np.allclose(row, vector, atol=1e-6) for vector in vectors]
            for row, vectors in zip(found, either, strict=True)
        ]
        assert all(sum(one) == 1 for one in drawn)
        seen.add(tuple(one.index(True) for one in drawn))
    assert seen == {(0, 0), (0, 1), (1, 0), (1, 1)}
    generator.state.assign(state)
    again = [encoder(inputs, training=True)["pooled_output"].numpy() for _ in range(2)]
    generator.state.assign(state)
    np.testing.assert_array_equal(encoder(inputs, training=True)["pooled_output"], again[0])
    assert set(encoder.rows(inputs).numpy()) >= {row for token in (3, 7) for row in split[token]}


def test_folding_by_hand():
    subwords = Subwords(TOKENS, [1, 2])
    table = np.random.default_rng(0).normal(size=(subwords.count, 3)).astype(np.float32)
    expected = [table[rows].sum(axis=0) for rows in subwords.rows.to_list()]
    np.testing.assert_allclose(subwords.fold(table), expected, atol=1e-6)


@given(
    words=st.sets(st.text("abก界é", min_size=1, max_size=9), min_size=1, max_size=30),
    lengths=st.lists(st.integers(1, 5), max_size=3),
    ngrams=st.lists(st.integers(1, 4), max_size=2),
)
@settings(max_examples=30)
def test_vectors_come_back_from_the_table_that_they_become(words, lengths, ngrams):
    subwords = Subwords(sorted(words), lengths, ngrams)
    vectors = np.random.default_rng(0).normal(size=(len(words), 2)).astype(np.float32)
    table = subwords.unfold(vectors)
    assert table.shape == (subwords.count, 2)
    np.testing.assert_array_equal(subwords.fold(table), vectors)


@pytest.mark.parametrize("training", [True, False])
def test_an_encoder_with_subwords_is_one_with_their_sums(training):
    config = EncoderConfig(vocab_size=len(TOKENS), hidden_size=6, num_layers=0)
    subwords = Subwords(TOKENS, [1, 2])
    encoder = build_encoder(config, subwords=subwords)
    folded = build_encoder(config)
    table = encoder.get_embedding_table()
    folded.get_embedding_table().assign(subwords.fold(table.numpy()))
    ids = tf.constant([[0, 5, 3, 3, 0], [0, 7, 8, 0, 0]])
    mask = tf.constant([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]])
    inputs = {"input_word_ids": ids, "input_mask": mask, "input_type_ids": 0 * ids}
    vectors = [embed(one, inputs, training=training) for one in (encoder, folded)]
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(embed(encoder, inputs, training=training) ** 3)
    gradient = tf.convert_to_tensor(tape.gradient(loss, table)).numpy()
    changed = np.flatnonzero(np.abs(gradient).sum(axis=1))
    # Those of tokens between the first and the last, and of their parts.
    wanted = {row for token in (5, 3, 7, 8) for row in subwords.rows[token].numpy()} - {0}
    assert set(changed) == wanted
    assert set(encoder.rows(inputs).numpy()) >= wanted
