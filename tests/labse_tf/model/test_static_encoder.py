"""An encoder without layers, layers on top of it, and tokens' vectors as sums of parts' rows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tiny_encoder import TINY_ENCODER, packed

from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder, dropout_generators, embed
from labse_tf.model.stacking import grow_layers
from labse_tf.model.static_encoder import Subwords

CONFIG = dataclasses.replace(TINY_ENCODER, vocab_size=9, num_layers=0, initializer_range=0.5)
PAD, CLS, SEP = 0, 2, 3


@pytest.fixture
def inputs():
    # The last row is a text without tokens.
    return packed([[CLS, 5, 7, 7, SEP], [CLS, 8, SEP, 0, 0], [CLS, SEP, 0, 0, 0]])


@pytest.fixture
def static():
    return build_encoder(CONFIG)


def test_the_average_leaves_out_what_is_no_token_and_training_looks_each_up_once(static, inputs):
    table = static.get_embedding_table().numpy()
    outputs = static(inputs)
    expected = [(table[5] + 2 * table[7]) / 3, table[8], (table[CLS] + table[SEP]) / 2]
    np.testing.assert_allclose(outputs["pooled_output"], expected, atol=1e-6)
    np.testing.assert_array_equal(outputs["sequence_output"], table[inputs["input_word_ids"]])
    assert [one.name for one in static.variables] == ["encoder/word_embeddings/embeddings:0"]
    longer = {name: tf.pad(tensor, [[0, 0], [0, 3]]) for name, tensor in inputs.items()}
    np.testing.assert_array_equal(static(longer)["pooled_output"], outputs["pooled_output"])
    table = static.get_embedding_table()
    results = []
    for training in (True, False):
        with tf.GradientTape() as tape:
            pooled = static(inputs, training=training)["pooled_output"]
            loss = tf.reduce_sum(pooled * tf.reshape(tf.range(24.0), [3, 8]))
        results.append((pooled, tape.gradient(loss, table)))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-6)
    sparse, whole = (gradient for _, gradient in results)
    assert sorted(sparse.indices.numpy()) == [PAD, CLS, SEP, 5, 7, 8]
    np.testing.assert_allclose(tf.convert_to_tensor(sparse), tf.convert_to_tensor(whole), atol=1e-5)


@pytest.mark.parametrize("lengths", [[], [1, 2]])
def test_a_step_does_not_copy_the_table(inputs, lengths):
    """TensorFlow's graph optimiser can turn a look-up into a sum over a copy of all rows."""
    tokens = [f"[{number}]" for number in range(5)] + list("abcd")
    static = build_encoder(CONFIG, subwords=Subwords(tokens, lengths) if lengths else None)
    table = static.get_embedding_table()
    shapes = {name: tf.TensorSpec([None, None], tf.int32) for name in inputs}
    batches = tf.data.Dataset.from_generator(lambda: iter([inputs] * 2), output_signature=shapes)

    @tf.function
    def steps(iterator):
        for _ in tf.range(2):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(static(next(iterator), training=True)["pooled_output"] ** 2)
            table.scatter_sub(tape.gradient(loss, table))

    context.enable_graph_collection()
    steps(iter(batches))
    graphs = context.export_run_metadata().function_graphs
    context.disable_graph_collection()
    operations = {node.op for graph in graphs for node in graph.post_optimization_graph.node}
    assert "ResourceGather" in operations and "ReadVariableOp" not in operations


def test_layers_on_top_change_nothing_at_first_and_then_learn(static, inputs):
    """At first the last kernels of both parts of a layer, which are 0."""
    # Rows of very different lengths keep their weight in the average.
    table = static.get_embedding_table()
    table.assign(table * tf.constant([[1], [1], [9], [9], [1], [0.01], [1], [3], [1]]))
    with_text = {name: tensor[:2] for name, tensor in inputs.items()}
    expected = embed(static, with_text, training=False)
    # Attention and feed-forward parts add 0, and embeddings have no dropout.
    for layers, training, dropout in ((1, False, 0.0), (3, True, 0.5)):
        deep = build_encoder(dataclasses.replace(CONFIG, dropout=dropout), num_layers=layers)
        grow_layers(table.numpy(), deep, unread=[CLS, SEP])
        found = embed(deep, with_text, training=training)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    with pytest.raises(InputError, match="spare columns"):
        grow_layers(np.ones([9, 8], np.float32), deep, unread=[CLS, SEP])
    direction = tf.random.stateless_normal([2, 8], seed=(1, 2))
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(direction * embed(deep, with_text, training=True))
    kernels = [one for one in deep.trainable_variables if "output/kernel" in one.name]
    gradients = [tape.gradient(loss, kernel).numpy() for kernel in kernels]
    assert len(kernels) == 2 * 3 and min(np.abs(gradient).max() for gradient in gradients) > 1e-6


# Tokens' vectors as sums of their own row and of their parts' rows.

TOKENS = ["[UNK]", "a", "##b", "ab", "##ba", "abab", "ไท", "ไทย", "##ย"]


def test_parts_and_splitting_by_hand():
    subwords = Subwords(TOKENS, [1, 2])
    names = list(TOKENS)
    for length in (1, 2):
        names += [f"{t} {length}" for t in TOKENS if len(t.removeprefix("##")) <= length]
    assert len(names) == subwords.count
    for token, parts in {
        "a": "a 1,a 2",
        # "##a" is no token: nothing spells "##ba" by single characters.
        "##ba": "##ba 2",
        "ab": "a 1,##b 1,ab 2",
        "abab": "",
        "ไทย": "ไท 2,##ย 2",
        "[UNK]": "",
    }.items():
        found = [names[row] for row in subwords.rows[TOKENS.index(token)].numpy()]
        assert found == [token, *filter(None, parts.split(","))]
    subwords = Subwords(TOKENS, [2])
    rows, split = subwords.rows.to_list(), subwords.split_rows().to_list()
    # 60 % of two characters is one, and of four two; of one, none.
    expected = {"ab": ["a", "##b"], "ไทย": ["ไท", "##ย"]}
    for token, found in zip(TOKENS, split, strict=True):
        pieces = expected.get(token, [token])
        assert found == [row for piece in pieces for row in rows[TOKENS.index(piece)]], token


def test_ngrams_by_hand():
    thai = ["ไทย", "##ไทย", "##ไทยย", "##คนไทย"]
    tokens = ["[UNK]", "Haus", "haus", "##haus", "HAUSE", "aus", *thai]
    subwords = Subwords(tokens, [], [3])
    names = [*tokens, "^ha", "hau", "aus", "ไทย"]
    assert subwords.count == len(names)
    found = [" ".join(names[row] for row in rows[1:]) for rows in subwords.rows.to_list()]
    # Inside a word, without its beginning; "aus" at the start of one is "^au", "aus".
    assert found[:6] == ["", "^ha hau aus", "^ha hau aus", "hau aus", "^ha hau aus", "aus"]
    # "^ไทย" has it; it is the whole of "##ไทย", which its own row is for.
    assert found[6:] == ["ไทย", "", "ไทย", "ไทย"]


def test_splitting_draws_tokens_anew_at_each_step_and_only_in_training():
    config = dataclasses.replace(CONFIG, subwords=[2], split_rate=0.5)
    subwords = Subwords(TOKENS, [2])
    encoder = build_encoder(config, subwords=subwords, replayable=True)
    [generator] = dropout_generators(encoder)
    table = encoder.get_embedding_table().numpy()
    inputs = packed([[1, 3, 1], [1, 7, 1]])
    rows, split = subwords.rows.to_list(), subwords.split_rows().to_list()
    either = [[table[which[token]].sum(axis=0) for which in (rows, split)] for token in (3, 7)]

    def vectors(training=True):
        return encoder(inputs, training=training)["pooled_output"].numpy()

    np.testing.assert_allclose(vectors(False), [one[0] for one in either], atol=1e-6)
    seen = set()
    state = generator.state.numpy()
    for _ in range(30):
        drawn = [
            [np.allclose(row, vector, atol=1e-6) for vector in choices]
            for row, choices in zip(vectors(), either, strict=True)
        ]
        assert all(sum(one) == 1 for one in drawn)
        seen.add(tuple(one.index(True) for one in drawn))
    assert seen == {(0, 0), (0, 1), (1, 0), (1, 1)}
    first = []
    for _ in range(2):
        generator.state.assign(state)
        first.append(vectors())
    np.testing.assert_array_equal(*first)
    assert set(encoder.rows(inputs).numpy()) >= {row for token in (3, 7) for row in split[token]}


@pytest.mark.parametrize("training", [True, False])
def test_an_encoder_with_subwords_is_one_with_their_sums(training):
    subwords = Subwords(TOKENS, [1, 2])
    encoder, folded = build_encoder(CONFIG, subwords=subwords), build_encoder(CONFIG)
    table = encoder.get_embedding_table()
    folded.get_embedding_table().assign(subwords.fold(table.numpy()))
    inputs = packed([[1, 5, 3, 3, 1], [1, 7, 8, 1, 0]])
    unfolded = subwords.unfold(folded.get_embedding_table().numpy())
    assert unfolded.shape == table.shape
    np.testing.assert_array_equal(subwords.fold(unfolded), folded.get_embedding_table())
    vectors = [embed(one, inputs, training=training) for one in (encoder, folded)]
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(embed(encoder, inputs, training=training) ** 3)
    gradient = tf.convert_to_tensor(tape.gradient(loss, table)).numpy()
    changed = np.flatnonzero(np.abs(gradient).sum(axis=1))
    # Rows of the tokens between the first and the last, and of their parts.
    wanted = {row for token in (5, 3, 7, 8) for row in subwords.rows[token].numpy()}
    assert set(changed) == wanted
    assert set(encoder.rows(inputs).numpy()) >= wanted
