"""An encoder without layers, and the layers that are put on top of it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context
from tiny_encoder import packed

from labse_tf.config import EncoderConfig
from labse_tf.errors import InputError
from labse_tf.losses import margin_cross_entropy
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.model.stacking import grow_layers
from labse_tf.model.subwords import Subwords

CONFIG = EncoderConfig(
    vocab_size=9,
    hidden_size=8,
    num_layers=0,
    num_attention_heads=2,
    intermediate_size=16,
    max_positions=8,
    dropout=0.0,
    pooling="mean",
    initializer_range=0.5,
)
PAD, CLS, SEP = 0, 2, 3


@pytest.fixture
def inputs():
    # The last row is a text without tokens.
    return packed([[CLS, 5, 7, 7, SEP], [CLS, 8, SEP, 0, 0], [CLS, SEP, 0, 0, 0]])


@pytest.fixture
def static():
    return build_encoder(CONFIG)


def test_the_average_leaves_out_what_is_no_token_of_the_text(static, inputs):
    table = static.get_embedding_table().numpy()
    outputs = static(inputs)
    expected = [(table[5] + 2 * table[7]) / 3, table[8], (table[CLS] + table[SEP]) / 2]
    np.testing.assert_allclose(outputs["pooled_output"], expected, atol=1e-6)
    np.testing.assert_array_equal(outputs["sequence_output"], table[inputs["input_word_ids"]])
    assert [variable.name for variable in static.variables] == [
        "encoder/word_embeddings/embeddings:0"
    ]


def test_training_looks_up_each_token_once_and_has_the_same_result(static, inputs):
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


def test_padding_changes_nothing(static, inputs):
    longer = {name: tf.pad(tensor, [[0, 0], [0, 3]]) for name, tensor in inputs.items()}
    np.testing.assert_array_equal(static(longer)["pooled_output"], static(inputs)["pooled_output"])


def test_spare_columns_stay_0(static, inputs):
    """Training has no gradient there, and neither at rows that it does not read."""
    with tf.GradientTape() as tape:
        rows = embed(static, inputs, training=True)[:2]
        similarities = tf.matmul(rows, rows[::-1], transpose_b=True)
        loss = tf.reduce_sum(margin_cross_entropy(similarities))
    gradient = tf.convert_to_tensor(tape.gradient(loss, static.get_embedding_table())).numpy()
    assert (static.get_embedding_table().numpy()[:, -2:] == 0).all()
    assert (gradient[:, -2:] == 0).all() and (gradient[[CLS, SEP, 0]] == 0).all()
    assert (gradient[[5, 7, 8], :-2] != 0).all()


@pytest.mark.parametrize("layers", [1, 3])
def test_layers_on_top_change_nothing_at_first(static, inputs, layers):
    # Rows of very different lengths keep their weight in the average.
    table = static.get_embedding_table()
    table.assign(table * tf.constant([[1], [1], [9], [9], [1], [0.01], [1], [3], [1]]))
    deep = build_encoder(CONFIG, num_layers=layers)
    grow_layers(table.numpy(), deep, unread=[CLS, SEP])
    with_text = {name: tensor[:2] for name, tensor in inputs.items()}
    found, expected = (embed(one, with_text, training=False) for one in (deep, static))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_layers_on_top_learn(static, inputs):
    """At first the last kernels of both parts of a layer, which are 0, then the others."""
    deep = build_encoder(CONFIG, num_layers=1)
    grow_layers(static.get_embedding_table().numpy(), deep, unread=[CLS, SEP])
    with_text = {name: tensor[:2] for name, tensor in inputs.items()}
    direction = tf.random.stateless_normal([2, 8], seed=(1, 2))

    def moved():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(direction * embed(deep, with_text, training=True))
        gradients = tape.gradient(loss, deep.trainable_variables)
        found = {
            variable.name
            for variable, gradient in zip(deep.trainable_variables, gradients, strict=True)
            if np.abs(tf.convert_to_tensor(gradient)).max() > 1e-6
        }
        for variable, gradient in zip(deep.trainable_variables, gradients, strict=True):
            variable.assign_sub(0.1 * tf.convert_to_tensor(gradient))
        return found

    first, second = moved(), moved()
    assert {name for name in first if name.endswith("output/kernel:0")} == {
        "encoder/transformer/layer_0/self_attention/attention_output/kernel:0",
        "encoder/transformer/layer_0/output/kernel:0",
    }
    # Softmax does not change with what is added to all keys alike.
    still = {v.name for v in deep.trainable_variables} - first - second
    assert still == {"encoder/transformer/layer_0/self_attention/key/bias:0"}


def test_a_table_without_spare_columns_is_refused():
    deep = build_encoder(CONFIG, num_layers=1)
    with pytest.raises(InputError, match="spare columns"):
        grow_layers(np.ones([9, 8], np.float32), deep, unread=[CLS, SEP])


def test_dropout_changes_nothing_before_layers_add_something(static, inputs):
    """Attention and feed-forward parts add 0 at first, and embeddings have no dropout."""
    deep = build_encoder(dataclasses.replace(CONFIG, dropout=0.5), num_layers=2)
    grow_layers(static.get_embedding_table().numpy(), deep, unread=[CLS, SEP])
    vectors = [embed(deep, inputs, training=training) for training in (True, False)]
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)
