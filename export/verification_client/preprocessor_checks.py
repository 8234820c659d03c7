"""Checks of the preprocessor."""

from __future__ import annotations

import tensorflow as tf
from interface import (
    INPUTS,
    TEXTS,
    Model,
    expect,
    expect_described,
)


def preprocessor_call(model: Model) -> str:
    rows = len(TEXTS)
    expect_described(model.packed, model.packed_shapes(rows, model.length))
    for count in (1, 1000):
        packed = model.preprocessor(tf.constant(["a b"] * count))
        expect_described(packed, model.packed_shapes(count, model.length))
    function = model.preprocessor.signatures["serving_default"]
    static = {name: spec.shape.as_list() for name, spec in function.structured_outputs.items()}
    expect(static == {name: [None, model.length] for name in INPUTS}, f"the signature: {static}")
    expect(not model.preprocessor.variables, "it has variables")
    empty = model.packed["input_word_ids"][1].numpy().tolist()
    expect(empty == _packed(model, [[]], model.length), f"the empty string: {empty[:4]}")
    return f"[batch, {model.length}]; batches of 1, {rows}, 1000; the empty string"


def tokenize(model: Model) -> str:
    tokens = model.preprocessor.tokenize(tf.constant(["ab a.", "", "汉字"]))
    expect(tokens.dtype == tf.int32 and tokens.shape.as_list() == [3, None, None], str(tokens))
    if model.tokenizer == "wordpiece":
        words = [len(row) for row in tokens.to_list()]
        expect(words == [3, 0, 2], f"{words} words, not [3, 0, 2]")
    special = model.preprocessor.tokenize.get_special_tokens_dict()
    found = {name: int(value) for name, value in special.items()}
    size = found.pop("vocab_size", None)
    expect(found == model.special, f"special tokens {found}")
    expect(size == model.facts["vocabulary"]["tokens"], f"vocab_size {size}")
    dtypes = {value.dtype.name for value in special.values()}
    expect(dtypes == {"int32"}, f"special tokens are {dtypes}")
    return f"{size} tokens"


def bert_pack_inputs(model: Model) -> str:
    """One and two segments, of any length, truncated round-robin."""
    pack = model.preprocessor.bert_pack_inputs
    first = tf.ragged.constant([[7, 8, 9], []], dtype=tf.int32)
    second = tf.ragged.constant([[5, 6], [5]], dtype=tf.int32)
    ends = 2 if "start_of_sequence_id" in model.special else 1
    cases = [
        ([first], [[[7, 8, 9]], [[]]], 4 + ends),
        ([first], [[[7, 8]], [[]]], 2 + ends),
        ([first, second], [[[7, 8, 9], [5, 6]], [[], [5]]], 7 + ends),
        ([first, second], [[[7, 8], [5, 6]], [[], [5]]], 5 + ends),
        ([first, second], [[[7, 8], [5]], [[], [5]]], 4 + ends),
    ]
    for segments, rows, length in cases:
        expected = [_packed(model, row, length) for row in rows]
        for form in (length, tf.constant(length)):
            packed = pack(segments, seq_length=form)
            found = packed["input_word_ids"].numpy().tolist()
            expect(found == expected, f"{len(segments)} segments in {length}: {found}")
    types = pack([first, second], seq_length=9)["input_type_ids"].numpy().tolist()
    expected = [0] * (3 + ends) + [1] * 3
    expect(types[0] == expected + [0] * (9 - len(expected)), f"types {types[0]}")
    words = model.preprocessor.tokenize(model.strings)
    for length in sorted({3, 16, model.length, model.longest}):
        packed = pack([words], seq_length=tf.constant(length))
        expect_described(packed, model.packed_shapes(len(TEXTS), length))
    return "one and two segments"


def _packed(model: Model, segments: list[list[int]], length: int) -> list[int]:
    """What packing should make of these ids."""
    start = [value for name, value in model.special.items() if name == "start_of_sequence_id"]
    end, padding = model.special["end_of_segment_id"], model.special["padding_id"]
    ids = start + [one for segment in segments for one in (*segment, end)]
    return ids + [padding] * (length - len(ids))


def within_tf_data(model: Model) -> str:
    batches = list(tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(model.preprocessor))
    joined = tf.concat([batch["input_word_ids"] for batch in batches], axis=0)
    expect(
        bool((joined == model.packed["input_word_ids"]).numpy().all()), "different ids than outside"
    )
    return ""
