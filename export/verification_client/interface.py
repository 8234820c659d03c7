"""A model dir as its users load it, and helpers for the checks."""

from __future__ import annotations

import json

import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
import tensorflow_text  # noqa: F401  It has the preprocessor's ops.

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
SPECIAL = {
    "padding_id": 0,
    "start_of_sequence_id": 101,
    "end_of_segment_id": 102,
    "mask_id": 103,
}
SPECIAL_OF = {
    "wordpiece": SPECIAL,
    "bpe": SPECIAL,
    "laser": {"padding_id": 1, "end_of_segment_id": 2},
}
ROOTS = ("tmp", "home", "root", "usr", "var", "opt", "mnt", "srv", "Users", "private", "content")
TEXTS = ["The cat sees the house.", "", "猫は家を見ます。", "القطة ترى البيت.", "แมวเห็นบ้าน " * 200]
# Differences of float32 sums in another order, as in other batches and with other lengths:
# see `distance`.
CLOSE = 1e-5
# Least cosine of vectors from a float16 or int8 table to those from float32.
PACKED = 0.999


class Failed(Exception):
    """A problem that a check found."""


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise Failed(message)


def described(value):
    if isinstance(value, dict):
        return {name: described(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [described(part) for part in value]
    return f"{value.dtype.name}{value.shape.as_list()}"


def expect_described(value, expected) -> str:
    found = described(value)
    expect(found == expected, f"{found}, not {expected}")
    return ""


def distance(one, other) -> float:
    """Returns the greatest difference of two vectors, as a part of their length.

    Rounding grows with both: a tanh of 768 columns is 20 long, a unit vector 1.
    """
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    length = np.maximum(*(np.linalg.norm(vectors, axis=-1) for vectors in (one, other)))
    return float((np.linalg.norm(one - other, axis=-1) / np.where(length == 0, 1, length)).max())


class Model:
    """A model dir, loaded as its users load it, and the facts in model.json."""

    def __init__(self, path: str, scratch: str) -> None:
        self.path, self.scratch = path, scratch
        with open(f"{path}/model.json", encoding="utf-8") as file:
            self.facts = json.load(file)
        sizes = self.facts["encoder"]
        self.dim, self.layers = sizes["hidden_size"], sizes["num_layers"]
        self.tokenizer = self.facts.get("tokenizer", "wordpiece")
        self.special = SPECIAL_OF[self.tokenizer]
        self.network = sizes.get("network", "bert")
        self.pooling = sizes.get("pooling", "cls")
        self.longest, self.length = sizes["max_positions"], self.facts["sequence_length"]
        self.table = self.facts["table"]
        self.preprocessor = hub.load(f"{path}/preprocessor")
        self.encoder = hub.load(f"{path}/encoder")
        self.strings = tf.constant(TEXTS)
        self.packed = self.preprocessor(self.strings)
        self.default = self.encoder(self.packed)["default"].numpy()

    def packed_shapes(self, rows: int, length: int) -> dict[str, str]:
        return dict.fromkeys(INPUTS, f"int32[{rows}, {length}]")
