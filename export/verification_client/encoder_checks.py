"""Checks of the encoder."""

from __future__ import annotations

import gc
import os
import shutil

import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
from interface import (
    CLOSE,
    INPUTS,
    TEXTS,
    Model,
    distance,
    expect,
    expect_described,
)


def encoder_call(model: Model) -> str:
    rows = len(TEXTS)
    sequence = f"float32[{rows}, {model.length}, {model.dim}]"
    pooled = f"float32[{rows}, {model.dim}]"
    outputs = model.encoder(model.packed)
    expect_described(
        dict(outputs),
        {
            "default": pooled,
            "pooled_output": pooled,
            "sequence_output": sequence,
            "encoder_outputs": [sequence] * max(model.layers, 1),
        },
    )
    expect(
        distance(outputs["default"], outputs["pooled_output"]) == 0, "default is not pooled_output"
    )
    if model.pooling == "cls":
        expect(np.abs(model.default).max() <= 1, "default is not a tanh")
    last = outputs["encoder_outputs"][-1]
    expect(distance(last, outputs["sequence_output"]) == 0, "the last layer is not sequence_output")
    return f"{model.layers} layers, {model.dim} wide"


def any_length(model: Model) -> str:
    """Lengths from 1 to the maximum; padding changes nothing."""
    lengths = sorted({1, 2, 7, 64, model.length, model.longest} & set(range(1, model.longest + 1)))
    for length in lengths:
        ones = tf.ones((2, length), tf.int32)
        inputs = dict(zip(INPUTS, (104 * ones, ones, 0 * ones), strict=True))
        expect_described(model.encoder(inputs)["default"], f"float32[2, {model.dim}]")
    short = [text for text in TEXTS if len(text) < 30]
    packed = model.preprocessor.bert_pack_inputs(
        [model.preprocessor.tokenize(tf.constant(short))], seq_length=tf.constant(model.longest)
    )
    rows = [TEXTS.index(text) for text in short]
    if model.length >= 32:
        off = distance(model.encoder(packed)["default"], model.default[rows])
        expect(off <= CLOSE, f"with more padding they differ by {off:.1e}")
    many = {name: tf.repeat(model.packed[name][:1, :16], 1000, axis=0) for name in INPUTS}
    expect_described(model.encoder(many)["default"], f"float32[1000, {model.dim}]")
    return f"{', '.join(map(str, lengths))}; a batch of 1000"


def signatures(model: Model) -> str:
    served = model.encoder.signatures["serving_default"](**model.packed)
    expect(set(served) == {"default", "pooled_output", "sequence_output"}, f"{sorted(served)}")
    off = distance(served["default"], model.default)
    expect(off <= CLOSE, f"the encoder's default differs by {off:.1e}")
    packed = model.preprocessor.signatures["serving_default"](model.strings)
    expect(set(packed) == set(INPUTS), f"{sorted(packed)}")
    return "named like the outputs"


def text_encoder(model: Model) -> str:
    """Maps strings to the same unit vectors as the preprocessor and the encoder."""
    if "text" not in model.facts["formats"]:
        return "the model dir has none"
    loaded = hub.KerasLayer(f"{model.path}/text_encoder")
    vectors = loaded(model.strings).numpy()
    unit = model.default / np.linalg.norm(model.default, axis=1, keepdims=True)
    off = distance(vectors, unit)
    expect(off <= CLOSE, f"it differs by {off:.1e}")
    return ""


def saved_again(model: Model) -> str:
    """A copy loaded by `tf.saved_model.load` is saved again, which loads without the copy."""
    copy, again = (os.path.join(model.scratch, name) for name in ("copy", "again"))
    for part in ("preprocessor", "encoder"):
        shutil.copytree(f"{model.path}/{part}", f"{copy}/{part}")
        tf.saved_model.save(tf.saved_model.load(f"{copy}/{part}"), f"{again}/{part}")
        gc.collect()
    shutil.rmtree(copy)
    preprocessor, encoder = (
        tf.saved_model.load(f"{again}/{part}") for part in ("preprocessor", "encoder")
    )
    off = distance(encoder(preprocessor(model.strings))["default"], model.default)
    shutil.rmtree(again)
    expect(off <= CLOSE, f"it differs by {off:.1e}")
    return "after its source was deleted"
