"""Checks of training the encoder further."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
from interface import (
    CLOSE,
    INPUTS,
    PACKED,
    Model,
    distance,
    expect,
)


def training_graph(model: Model) -> str:
    """The embeddings are those that the training graph computed when the model was exported."""
    with open(f"{model.path}/verification/sentences.txt", encoding="utf-8") as file:
        sentences = file.read().split("\n")[:-1]
    expected = np.load(f"{model.path}/verification/vectors.npy", allow_pickle=False)
    found = model.encoder(model.preprocessor(tf.constant(sentences)))["default"].numpy()
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    if model.table != "float32":
        cosine = float((found * expected).sum(axis=1).min())
        expect(cosine >= PACKED, f"the smallest cosine is {cosine:.4f}")
        return f"{len(sentences)} sentences, smallest cosine {cosine:.5f}"
    off = distance(found, expected)
    expect(off <= CLOSE, f"they differ by {off:.1e}")
    return f"{len(sentences)} sentences, largest difference {off:.1e}"


def fine_tuning(model: Model) -> str:
    """A step of SGD on two replicas changes every weight."""
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )
    with strategy.scope():
        layer = hub.KerasLayer(f"{model.path}/encoder", trainable=True)
    variables = layer.trainable_variables
    count = _trainable_weights(model)
    expect(len(variables) == count, f"{len(variables)} trainable weights, not {count}")
    if not count:
        return "a packed table alone does not train"
    inputs = {name: model.packed[name][:3, :16] for name in INPUTS}

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(inputs, training=True)["default"] - 1.0))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    with strategy.scope():
        from tf_keras import optimizers

        optimizer = optimizers.SGD(0.1)
    strategy.run(step)
    before = {variable.name: variable for variable in model.encoder.variables}
    still = [v.name for v in variables if not tf.reduce_any(v != before[v.name])]
    # A bias of the keys adds the same to all logits, so it does not change the softmax.
    still = [name for name in still if "key/bias" not in name]
    expect(not still, f"a step changes nothing in {', '.join(still)}")
    return f"{count} weights under MirroredStrategy"


def _trainable_weights(model: Model) -> int:
    table = model.table == "float32"  # Packed tables are frozen.
    if not model.layers:
        return table
    if model.network == "bilstm":
        return table + 6 * model.layers  # Two kernels and a bias for each direction.
    # 2 other tables and the 2 weights of a norm, 16 per layer, 2 of the pooler.
    return table + 4 + 16 * model.layers + 2


def dropout(model: Model) -> str:
    between = model.layers - (model.network == "bilstm")
    if not model.facts["encoder"]["dropout"] or between < 1:
        return "the model has none"
    layer = hub.KerasLayer(f"{model.path}/encoder", trainable=True)
    inputs = {name: model.packed[name][:, :16] for name in INPUTS}
    one, other = (layer(inputs, training=True)["default"] for _ in range(2))
    expect(distance(one, other) > CLOSE, "training=True applies no dropout")
    one, other = (layer(inputs, training=False)["default"] for _ in range(2))
    expect(distance(one, other) <= CLOSE, "training=False applies dropout")
    return "training= turns it on and off"
