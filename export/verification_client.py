"""Does with a model dir what users of google/LaBSE/2 do; run by verification.py, by itself.

    python -I verification_client.py MODEL_DIR SCRATCH_DIR

It must run where TensorFlow, TF Text and TF Hub are all there is, so it imports nothing of ours.
Prints a line of JSON for each check: `check`, `ok`, `detail`.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable

# Users of a model dir have none of these, whichever way they are installed here.
HIDDEN = ("labse_tf", "export", "vocab", "beam_pipelines", "official")
for name in HIDDEN:
    sys.modules[name] = None
os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_hub as hub  # noqa: E402
import tensorflow_text  # noqa: E402, F401  The preprocessor's ops live in it.

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
SPECIAL = {
    "padding_id": 0,
    "start_of_sequence_id": 101,
    "end_of_segment_id": 102,
    "mask_id": 103,
}
ROOTS = ("tmp", "home", "root", "usr", "var", "opt", "mnt", "srv", "Users", "private", "content")
TEXTS = ["The cat sees the house.", "", "猫は家を見ます。", "القطة ترى البيت.", "แมวเห็นบ้าน " * 200]
# Of float32 sums in another order, as other batches and other lengths have them.
CLOSE = 1e-5
# Cosines of vectors from a table of float16 or int8 to those from float32.
PACKED = 0.999


class Failed(Exception):
    """What a check found wrong."""


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
    return float(np.abs(np.asarray(one) - np.asarray(other)).max())


class Model:
    """A model dir, loaded as its users load it, and what model.json says."""

    def __init__(self, path: str, scratch: str) -> None:
        self.path, self.scratch = path, scratch
        with open(f"{path}/model.json", encoding="utf-8") as file:
            self.facts = json.load(file)
        sizes = self.facts["encoder"]
        self.dim, self.layers = sizes["hidden_size"], sizes["num_layers"]
        self.longest, self.length = sizes["max_positions"], self.facts["sequence_length"]
        self.table = self.facts["table"]
        self.preprocessor = hub.load(f"{path}/preprocessor")
        self.encoder = hub.load(f"{path}/encoder")
        self.strings = tf.constant(TEXTS)
        self.packed = self.preprocessor(self.strings)
        self.default = self.encoder(self.packed)["default"].numpy()

    def packed_shapes(self, rows: int, length: int) -> dict[str, str]:
        return dict.fromkeys(INPUTS, f"int32[{rows}, {length}]")


def ours_is_hidden(model: Model) -> str:
    for name in HIDDEN:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        raise Failed(f"{name} can be imported: the other checks prove little")
    return "TensorFlow, TF Text and TF Hub alone"


def no_absolute_path(model: Model) -> str:
    """Nothing in the graphs names a place on the machine that made them."""
    pattern = re.compile(rb"(?<![\w./-])/(?:" + "|".join(ROOTS).encode() + rb")/[\w./-]+")
    for folder, _, names in os.walk(model.path):
        for name in set(names) & {"saved_model.pb", "keras_metadata.pb", "model.json"}:
            with open(os.path.join(folder, name), "rb") as file:
                found = sorted(set(pattern.findall(file.read())))
            expect(not found, f"{os.path.relpath(os.path.join(folder, name), model.path)}: {found}")
    return ""


def loaders_agree(model: Model) -> str:
    """Keras layers give what `hub.load` gave; what `tf.saved_model.load` gives, `saved_again`."""
    packed = hub.KerasLayer(f"{model.path}/preprocessor")(model.strings)
    for name in INPUTS:
        expect(bool((packed[name] == model.packed[name]).numpy().all()), f"other {name}")
    default = hub.KerasLayer(f"{model.path}/encoder")(packed)["default"]
    off = distance(default, model.default)
    expect(off <= CLOSE, f"they differ by {off:.1e}")
    return "hub.KerasLayer, hub.load"


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
    expect(empty == [101, 102] + [0] * (model.length - 2), f"the empty string: {empty[:4]}")
    return f"[batch, {model.length}]; batches of 1, {rows}, 1000; the empty string"


def tokenize(model: Model) -> str:
    tokens = model.preprocessor.tokenize(tf.constant(["ab a.", "", "汉字"]))
    expect(tokens.dtype == tf.int32 and tokens.shape.as_list() == [3, None, None], str(tokens))
    words = [len(row) for row in tokens.to_list()]
    expect(words == [3, 0, 2], f"{words} words, not [3, 0, 2]")
    special = model.preprocessor.tokenize.get_special_tokens_dict()
    found = {name: int(value) for name, value in special.items()}
    size = found.pop("vocab_size", None)
    expect(found == SPECIAL, f"special tokens {found}")
    expect(size == model.facts["vocabulary"]["tokens"], f"vocab_size {size}")
    dtypes = {value.dtype.name for value in special.values()}
    expect(dtypes == {"int32"}, f"special tokens are {dtypes}")
    return f"{size} tokens"


def bert_pack_inputs(model: Model) -> str:
    """One and two segments, of any length, truncated round-robin."""
    pack = model.preprocessor.bert_pack_inputs
    first = tf.ragged.constant([[7, 8, 9], []], dtype=tf.int32)
    second = tf.ragged.constant([[5, 6], [5]], dtype=tf.int32)
    cases = [
        ([first], 6, [[101, 7, 8, 9, 102, 0], [101, 102, 0, 0, 0, 0]]),
        ([first], 4, [[101, 7, 8, 102], [101, 102, 0, 0]]),
        ([first, second], 9, [[101, 7, 8, 9, 102, 5, 6, 102, 0], [101, 102, 5, 102] + [0] * 5]),
        ([first, second], 7, [[101, 7, 8, 102, 5, 6, 102], [101, 102, 5, 102, 0, 0, 0]]),
        ([first, second], 6, [[101, 7, 8, 102, 5, 102], [101, 102, 5, 102, 0, 0]]),
    ]
    for segments, length, expected in cases:
        for form in (length, tf.constant(length)):
            packed = pack(segments, seq_length=form)
            found = packed["input_word_ids"].numpy().tolist()
            expect(found == expected, f"{len(segments)} segments in {length}: {found}")
    types = pack([first, second], seq_length=9)["input_type_ids"].numpy().tolist()
    expect(types[0] == [0] * 5 + [1] * 3 + [0], f"types {types[0]}")
    words = model.preprocessor.tokenize(model.strings)
    for length in sorted({3, 16, model.length, model.longest}):
        packed = pack([words], seq_length=tf.constant(length))
        expect_described(packed, model.packed_shapes(len(TEXTS), length))
    return "one and two segments"


def within_tf_data(model: Model) -> str:
    batches = list(tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(model.preprocessor))
    joined = tf.concat([batch["input_word_ids"] for batch in batches], axis=0)
    expect(bool((joined == model.packed["input_word_ids"]).numpy().all()), "other ids than outside")
    return ""


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
            "encoder_outputs": [sequence] * model.layers,
        },
    )
    expect(distance(outputs["default"], outputs["pooled_output"]) == 0, "default is another tensor")
    expect(np.abs(model.default).max() <= 1, "default is no tanh")
    last = outputs["encoder_outputs"][-1]
    expect(distance(last, outputs["sequence_output"]) == 0, "the last layer is another tensor")
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
    expect(off <= CLOSE, f"the encoder's differs by {off:.1e}")
    packed = model.preprocessor.signatures["serving_default"](model.strings)
    expect(set(packed) == set(INPUTS), f"{sorted(packed)}")
    return "named as the outputs"


def assets(model: Model) -> str:
    # Tokens may hold what Python takes for the end of a line.
    with open(model.encoder.vocab_file.asset_path.numpy(), "rb") as file:
        tokens = file.read().count(b"\n")
    expect(tokens == model.facts["vocabulary"]["tokens"], f"vocab_file has {tokens} tokens")
    expect(bool(model.encoder.do_lower_case.numpy()) is False, "do_lower_case is true")
    return "vocab_file, do_lower_case"


def text_encoder(model: Model) -> str:
    """Strings straight to unit vectors, those of the other two."""
    if "text" not in model.facts["formats"]:
        return "the model dir has none"
    loaded = hub.KerasLayer(f"{model.path}/text_encoder")
    vectors = loaded(model.strings).numpy()
    unit = model.default / np.linalg.norm(model.default, axis=1, keepdims=True)
    off = distance(vectors, unit)
    expect(off <= CLOSE, f"it differs by {off:.1e}")
    return ""


def training_graph(model: Model) -> str:
    """The embeddings are those that the training graph gave when the model was exported."""
    with open(f"{model.path}/verification/sentences.txt", encoding="utf-8") as file:
        sentences = file.read().splitlines()
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
    # Three tables and a norm, 16 a layer, 2 of the pooler; a packed table does not train.
    count = 5 + 16 * model.layers + 2 - (model.table != "float32")
    expect(len(variables) == count, f"{len(variables)} trainable weights, not {count}")
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
    # Softmax does not change with what is added to all keys alike.
    still = [name for name in still if "key/bias" not in name]
    expect(not still, f"a step changes nothing in {', '.join(still)}")
    return f"{count} weights under MirroredStrategy"


def dropout(model: Model) -> str:
    if not model.facts["encoder"]["dropout"]:
        return "the model has none"
    layer = hub.KerasLayer(f"{model.path}/encoder", trainable=True)
    inputs = {name: model.packed[name][:, :16] for name in INPUTS}
    one, other = (layer(inputs, training=True)["default"] for _ in range(2))
    expect(distance(one, other) > CLOSE, "training=True drops nothing")
    one, other = (layer(inputs, training=False)["default"] for _ in range(2))
    expect(distance(one, other) <= CLOSE, "training=False drops")
    return "training= switches it"


def saved_again(model: Model) -> str:
    """What `tf.saved_model.load` got from a copy is saved; the copy is deleted; it still loads."""
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
    return "its source deleted"


CHECKS: tuple[Callable[[Model], str], ...] = (
    ours_is_hidden,
    no_absolute_path,
    loaders_agree,
    preprocessor_call,
    tokenize,
    bert_pack_inputs,
    within_tf_data,
    encoder_call,
    any_length,
    signatures,
    assets,
    text_encoder,
    training_graph,
    dropout,
    fine_tuning,
    saved_again,
)


def main(path: str, scratch: str) -> None:
    # What libraries print is not for the reader of the results.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Two replicas, before TensorFlow starts its devices.
    halves = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], halves)
    # Half of the time would go into looking for garbage among what stays.
    gc.set_threshold(100_000, 50, 100)
    model = Model(path, scratch)
    gc.freeze()
    for check in CHECKS:
        try:
            line = {"ok": True, "detail": check(model)}
        except Failed as failure:
            line = {"ok": False, "detail": str(failure)}
        except Exception as error:  # Whatever a user would have run into is a finding.
            line = {"ok": False, "detail": f"{type(error).__name__}: {str(error)[:300]}"}
        gc.collect()  # Loaded models are in cycles; each holds the weights once more.
        line = {"check": check.__name__.replace("_", " "), **line}
        print(json.dumps(line), file=results, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
