"""Uses a model dir as users of google/LaBSE/2 do; verification.py runs it as a separate program.

    python -I verification_client.py MODEL_DIR SCRATCH_DIR

It must run where only TensorFlow, TF Text and TF Hub are installed, so it imports none of our code.
Prints a line of JSON for each check: `check`, `ok`, `detail`.
"""

from __future__ import annotations

import functools
import gc
import glob
import importlib
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator

# Packages that users of a model dir do not have, however they are installed here.
HIDDEN = ("labse_tf", "export", "vocab", "beam_pipelines", "official")

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
for name in HIDDEN:
    sys.modules[name] = None

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tensorflow_hub as hub  # noqa: E402
import tensorflow_text  # noqa: E402, F401  It has the preprocessor's ops.

INPUTS = ("input_word_ids", "input_mask", "input_type_ids")
ONNX_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
SPECIAL = {
    "padding_id": 0,
    "start_of_sequence_id": 101,
    "end_of_segment_id": 102,
    "mask_id": 103,
}
LASER_SPECIAL = {"padding_id": 1, "end_of_segment_id": 2}
# Without these, the files that need them are not checked.
OPTIONAL = ("onnxruntime", "ai_edge_litert", "tokenizers")
ROOTS = ("tmp", "home", "root", "usr", "var", "opt", "mnt", "srv", "Users", "private", "content")
TEXTS = ["The cat sees the house.", "", "猫は家を見ます。", "القطة ترى البيت.", "แมวเห็นบ้าน " * 200]
# The largest `distance` of float32 sums in another order, as in other batches and lengths.
CLOSE = 1e-5
# Least cosines to the training graph's vectors: with a table in float16 or int8, with sums in
# another order, and with weights in int8.
PACKED, FLOAT, INT8 = 0.999, 0.9999, 0.95


class Failed(Exception):
    """A problem that a check found."""


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise Failed(message)


def expect_described(value, expected) -> None:
    """Checks the dtypes and shapes of tensors, in dicts and lists."""

    def described(value):
        if isinstance(value, dict):
            return {name: described(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [described(part) for part in value]
        return f"{value.dtype.name}{value.shape.as_list()}"

    found = described(value)
    expect(found == expected, f"{found}, not {expected}")


def distance(one, other) -> float:
    """Returns the greatest difference of two vectors, as a part of their length.

    Rounding grows with both: a tanh of 768 columns is 20 long, a unit vector 1.
    """
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    length = np.maximum(*(np.linalg.norm(vectors, axis=-1) for vectors in (one, other)))
    return float((np.linalg.norm(one - other, axis=-1) / np.where(length == 0, 1, length)).max())


def expect_close(one, other, message: str) -> float:
    off = distance(one, other)
    expect(off <= CLOSE, f"{message} by {off:.1e}")
    return off


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def read_json(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Model:
    """A model dir, its facts, and what the training graph made of some sentences at the export."""

    def __init__(self, path: str, scratch: str) -> None:
        self.path, self.scratch = path, scratch
        self.facts = read_json(f"{path}/model.json")
        sizes = self.facts["encoder"]
        self.dim, self.layers = sizes["hidden_size"], sizes["num_layers"]
        self.dropout, self.longest = sizes["dropout"], sizes["max_positions"]
        self.network, self.pooling = sizes.get("network", "bert"), sizes.get("pooling", "cls")
        self.length, self.table = self.facts["sequence_length"], self.facts["table"]
        self.tokens = self.facts["vocabulary"]["tokens"]
        self.tokenizer = self.facts.get("tokenizer", "wordpiece")
        self.special = LASER_SPECIAL if self.tokenizer == "laser" else SPECIAL
        with open(f"{path}/verification/sentences.txt", encoding="utf-8", newline="\n") as file:
            self.sentences = file.read().split("\n")[:-1]
        self.vectors = np.load(f"{path}/verification/vectors.npy", allow_pickle=False)

    def load(self) -> None:
        """Loads the SavedModels as their users do."""
        self.preprocessor = hub.load(f"{self.path}/preprocessor")
        self.encoder = hub.load(f"{self.path}/encoder")
        self.strings = tf.constant(TEXTS)
        self.packed = self.preprocessor(self.strings)
        self.default = self.encoder(self.packed)["default"].numpy()

    @functools.cached_property
    def ids(self) -> np.ndarray:
        """The tokens of the sentences, int32 `[n, length]`."""
        return np.load(f"{self.path}/verification/word_ids.npy", allow_pickle=False)

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        mask = (self.ids != self.special["padding_id"]).astype(np.int32)
        return self.ids, mask, 0 * self.ids

    def packed_shapes(self, rows: int, length: int) -> dict[str, str]:
        return dict.fromkeys(INPUTS, f"int32[{rows}, {length}]")

    def packed_ids(self, segments: list[list[int]], length: int) -> list[int]:
        """Returns what packing should make of these ids."""
        start = [value for name, value in self.special.items() if name == "start_of_sequence_id"]
        end, padding = self.special["end_of_segment_id"], self.special["padding_id"]
        ids = start + [one for segment in segments for one in (*segment, end)]
        return ids + [padding] * (length - len(ids))

    def compare(self, vectors: np.ndarray, least: float) -> str:
        """Checks the cosines of the sentences' vectors to the training graph's."""
        cosines = (unit(vectors) * self.vectors).sum(axis=1)
        worst = int(cosines.argmin())
        message = f"'{self.sentences[worst]}' has a cosine of {cosines[worst]:.5f} to its vector"
        expect(bool(cosines[worst] >= least), message)
        return f"cosines from {cosines[worst]:.5f}"


# Checks of the SavedModels. Each returns a detail, or raises Failed.


def ours_is_hidden(model: Model) -> str:
    for name in HIDDEN:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        raise Failed(f"{name} can be imported: the other checks prove little")
    return "only TensorFlow, TF Text and TF Hub"


def no_absolute_path(model: Model) -> str:
    """The graphs contain no path of the machine that made them."""
    pattern = re.compile(rb"(?<![\w./-])/(?:" + "|".join(ROOTS).encode() + rb")/[\w./-]+")
    for folder, _, names in os.walk(model.path):
        for name in set(names) & {"saved_model.pb", "keras_metadata.pb", "model.json"}:
            with open(os.path.join(folder, name), "rb") as file:
                found = sorted(set(pattern.findall(file.read())))
            expect(not found, f"{os.path.relpath(os.path.join(folder, name), model.path)}: {found}")
    return ""


def loaders_agree(model: Model) -> str:
    """Keras layers return the same as `hub.load`. `saved_again` checks `tf.saved_model.load`."""
    packed = hub.KerasLayer(f"{model.path}/preprocessor")(model.strings)
    for name in INPUTS:
        expect(bool((packed[name] == model.packed[name]).numpy().all()), f"different {name}")
    default = hub.KerasLayer(f"{model.path}/encoder")(packed)["default"]
    expect_close(default, model.default, "they differ")
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
    expect(empty == model.packed_ids([[]], model.length), f"the empty string: {empty[:4]}")
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
    expect(size == model.tokens, f"vocab_size {size}")
    dtypes = {value.dtype.name for value in special.values()}
    expect(dtypes == {"int32"}, f"special tokens are {dtypes}")
    return f"{size} tokens"


def bert_pack_inputs(model: Model) -> str:
    """One and two segments, of any length, truncated round-robin."""
    pack = model.preprocessor.bert_pack_inputs
    first = tf.ragged.constant([[7, 8, 9], []], dtype=tf.int32)
    second = tf.ragged.constant([[5, 6], [5]], dtype=tf.int32)
    ends = 2 if "start_of_sequence_id" in model.special else 1
    for segments, rows, length in (
        ([first], [[[7, 8, 9]], [[]]], 4 + ends),
        ([first], [[[7, 8]], [[]]], 2 + ends),
        ([first, second], [[[7, 8, 9], [5, 6]], [[], [5]]], 7 + ends),
        ([first, second], [[[7, 8], [5, 6]], [[], [5]]], 5 + ends),
        ([first, second], [[[7, 8], [5]], [[], [5]]], 4 + ends),
    ):
        expected = [model.packed_ids(row, length) for row in rows]
        for form in (length, tf.constant(length)):
            found = pack(segments, seq_length=form)["input_word_ids"].numpy().tolist()
            expect(found == expected, f"{len(segments)} segments in {length}: {found}")
    types = pack([first, second], seq_length=9)["input_type_ids"].numpy().tolist()
    expected = [0] * (3 + ends) + [1] * 3
    expect(types[0] == expected + [0] * (9 - len(expected)), f"types {types[0]}")
    words = model.preprocessor.tokenize(model.strings)
    for length in sorted({3, 16, model.length, model.longest}):
        packed = pack([words], seq_length=tf.constant(length))
        expect_described(packed, model.packed_shapes(len(TEXTS), length))
    return "one and two segments"


def within_tf_data(model: Model) -> str:
    batches = tf.data.Dataset.from_tensor_slices(TEXTS).batch(2).map(model.preprocessor)
    joined = tf.concat([batch["input_word_ids"] for batch in batches], axis=0)
    same = (joined == model.packed["input_word_ids"]).numpy().all()
    expect(bool(same), "different ids than outside")
    return ""


def encoder_call(model: Model) -> str:
    rows = len(TEXTS)
    sequence = f"float32[{rows}, {model.length}, {model.dim}]"
    pooled = f"float32[{rows}, {model.dim}]"
    outputs = model.encoder(model.packed)
    expected = {"default": pooled, "pooled_output": pooled, "sequence_output": sequence}
    expected["encoder_outputs"] = [sequence] * max(model.layers, 1)
    expect_described(dict(outputs), expected)
    same = distance(outputs["default"], outputs["pooled_output"]) == 0
    expect(same, "default is not pooled_output")
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
    if model.length >= 32:
        rows = model.default[[TEXTS.index(text) for text in short]]
        expect_close(model.encoder(packed)["default"], rows, "with more padding they differ")
    many = {name: tf.repeat(model.packed[name][:1, :16], 1000, axis=0) for name in INPUTS}
    expect_described(model.encoder(many)["default"], f"float32[1000, {model.dim}]")
    return f"{', '.join(map(str, lengths))}; a batch of 1000"


def signatures(model: Model) -> str:
    served = model.encoder.signatures["serving_default"](**model.packed)
    expect(set(served) == {"default", "pooled_output", "sequence_output"}, f"{sorted(served)}")
    expect_close(served["default"], model.default, "the encoder's default differs")
    packed = model.preprocessor.signatures["serving_default"](model.strings)
    expect(set(packed) == set(INPUTS), f"{sorted(packed)}")
    return "named like the outputs"


def assets(model: Model) -> str:
    # Tokens may contain characters that Python treats as line ends.
    with open(model.encoder.vocab_file.asset_path.numpy(), "rb") as file:
        tokens = file.read().count(b"\n")
    expect(tokens == model.tokens, f"vocab_file has {tokens} tokens")
    expect(bool(model.encoder.do_lower_case.numpy()) is False, "do_lower_case is true")
    return "vocab_file, do_lower_case"


def text_encoder(model: Model) -> str:
    """Maps strings to the same unit vectors as the preprocessor and the encoder."""
    if "text" not in model.facts["formats"]:
        return "the model dir has none"
    vectors = hub.KerasLayer(f"{model.path}/text_encoder")(model.strings)
    expect_close(vectors, unit(model.default), "it differs")
    return ""


def training_graph(model: Model) -> str:
    """The embeddings are those that the training graph computed when the model was exported."""
    packed = model.preprocessor(tf.constant(model.sentences))
    found = model.encoder(packed)["default"].numpy()
    count = f"{len(model.sentences)} sentences"
    if model.table != "float32":
        return f"{count}, {model.compare(found, PACKED)}"
    off = expect_close(unit(found), model.vectors, "they differ")
    return f"{count}, largest difference {off:.1e}"


def dropout(model: Model) -> str:
    between = model.layers - (model.network == "bilstm")
    if not model.dropout or between < 1:
        return "the model has none"
    layer = hub.KerasLayer(f"{model.path}/encoder", trainable=True)
    inputs = {name: model.packed[name][:, :16] for name in INPUTS}
    one, other = (layer(inputs, training=True)["default"] for _ in range(2))
    expect(distance(one, other) > CLOSE, "training=True applies no dropout")
    one, other = (layer(inputs, training=False)["default"] for _ in range(2))
    expect(distance(one, other) <= CLOSE, "training=False applies dropout")
    return "training= turns it on and off"


def fine_tuning(model: Model) -> str:
    """A step of SGD on two replicas changes every weight."""
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )
    with strategy.scope():
        layer = hub.KerasLayer(f"{model.path}/encoder", trainable=True)
        from tf_keras import optimizers

        optimizer = optimizers.SGD(0.1)
    variables = layer.trainable_variables
    count = int(model.table == "float32")  # Packed tables are frozen.
    if model.network == "bilstm":
        count += 6 * model.layers  # Two kernels and a bias for each direction.
    elif model.layers:
        # 2 other tables and the 2 weights of a norm, 16 per layer, 2 of the pooler.
        count += 4 + 16 * model.layers + 2
    expect(len(variables) == count, f"{len(variables)} trainable weights, not {count}")
    if not count:
        return "a packed table alone does not train"
    inputs = {name: model.packed[name][:3, :16] for name in INPUTS}

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(layer(inputs, training=True)["default"] - 1.0))
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    strategy.run(step)
    before = {variable.name: variable for variable in model.encoder.variables}
    still = [v.name for v in variables if not tf.reduce_any(v != before[v.name])]
    # A bias of the keys adds the same to all logits, so it does not change the softmax.
    still = [name for name in still if "key/bias" not in name]
    expect(not still, f"a step changes nothing in {', '.join(still)}")
    return f"{count} weights under MirroredStrategy"


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
    found = encoder(preprocessor(model.strings))["default"]
    shutil.rmtree(again)
    expect_close(found, model.default, "it differs")
    return "after its source was deleted"


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


# Checks of the files of Hugging Face, ONNX and LiteRT, which need `verification/` alone.


def format_checks(model: Model) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yields the name of each check, and the check."""
    path = model.path
    if not os.path.isfile(f"{path}/verification/word_ids.npy"):
        return  # Exported before there was such a file.
    for file in sorted(glob.glob(f"{glob.escape(path)}/onnx/*.onnx")):
        yield f"onnx {os.path.basename(file)}", functools.partial(_onnx, model, file)
    if os.path.isfile(f"{path}/onnx/tokenizer.json"):
        yield "onnx tokens", lambda: _rust_tokens(model)
    for file in sorted(glob.glob(f"{glob.escape(path)}/lite/*.tflite")):
        yield f"lite {os.path.basename(file)}", functools.partial(_lite, model, file)
    if os.path.isfile(f"{path}/config.json"):
        yield "huggingface weights", lambda: _huggingface(model)
        yield "huggingface tokens", lambda: _huggingface_tokens(model)
    if os.path.isfile(f"{path}/0_StaticEmbedding/model.safetensors"):
        yield "huggingface weights", lambda: _static_embedding(model)


def _onnx(model: Model, file: str) -> str:
    import onnxruntime

    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    inputs = (array.astype(np.int64) for array in model.inputs)
    vectors = session.run(["default"], dict(zip(ONNX_INPUTS, inputs, strict=True)))[0]
    return model.compare(vectors, INT8 if "int8" in file else FLOAT)


def _lite(model: Model, file: str) -> str:
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(file).get_signature_runner()
    return model.compare(run(**dict(zip(INPUTS, model.inputs, strict=True)))["default"], INT8)


def _rust_tokens(model: Model) -> str:
    from tokenizers import Tokenizer

    return _compare_tokens(model, Tokenizer.from_file(f"{model.path}/onnx/tokenizer.json"))


def _huggingface_tokens(model: Model) -> str:
    from tokenizers import BertWordPieceTokenizer

    settings = {"lowercase": False, "strip_accents": False, "handle_chinese_chars": True}
    tokenizer = BertWordPieceTokenizer(f"{model.path}/vocab.txt", **settings)
    tokenizer.enable_truncation(model.ids.shape[1])
    return _compare_tokens(model, tokenizer)


def _compare_tokens(model: Model, tokenizer) -> str:
    for sentence, row in zip(model.sentences, model.ids.tolist(), strict=True):
        ids = tokenizer.encode(sentence).ids
        same = ids == row[: len(ids)] and not any(row[len(ids) :])
        expect(same, f"'{sentence}' has other ids")
    return f"the ids of {len(model.sentences)} sentences"


def _load_tensors(path: str) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(f"{path}/model.safetensors")


def _static_embedding(model: Model) -> str:
    [table] = _load_tensors(f"{model.path}/0_StaticEmbedding").values()
    special = set(SPECIAL.values())
    rows = [[token for token in row if token not in special] for row in model.ids.tolist()]
    return model.compare(np.stack([table[row].mean(axis=0) for row in rows]), FLOAT)


def _huggingface(model: Model) -> str:
    """BERT in NumPy (Devlin et al. 2019), with the pooling, dense layer and norm of its modules."""
    tensors, dense = (_load_tensors(f"{model.path}{part}") for part in ("", "/2_Dense"))
    config, pooling, layer = (
        read_json(f"{model.path}{part}/config.json") for part in ("", "/1_Pooling", "/2_Dense")
    )
    vectors = []
    for row in model.ids:
        sequence = _bert(tensors, config, row[row != 0])
        pooled = sequence.mean(axis=0) if pooling["pooling_mode_mean_tokens"] else sequence[0]
        pooled = dense["linear.weight"] @ pooled + dense["linear.bias"]
        vectors.append(np.tanh(pooled) if layer["activation_function"].endswith("Tanh") else pooled)
    return model.compare(np.stack(vectors), FLOAT)


def _bert(tensors: dict[str, np.ndarray], config: dict, ids: np.ndarray) -> np.ndarray:
    """Returns the last layer's output, `[length, width]`, of one sequence of ids."""

    def dense(name: str, x: np.ndarray) -> np.ndarray:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return x * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    x = tensors["embeddings.word_embeddings.weight"][ids]
    x = x + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm("embeddings.LayerNorm", x + tensors["embeddings.token_type_embeddings.weight"][0])
    for number in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        query, key, value = (
            dense(f"{name}.attention.self.{part}", x).reshape(
                len(ids), config["num_attention_heads"], -1
            )
            for part in ("query", "key", "value")
        )
        scores = np.einsum("qhd,khd->hqk", query, key) / math.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", weights, value).reshape(x.shape)
        attended = dense(f"{name}.attention.output.dense", mixed)
        x = norm(f"{name}.attention.output.LayerNorm", x + attended)
        inner = _gelu(config["hidden_act"], dense(f"{name}.intermediate.dense", x))
        x = norm(f"{name}.output.LayerNorm", x + dense(f"{name}.output.dense", inner))
    return x


def _gelu(name: str, x: np.ndarray) -> np.ndarray:
    if name == "gelu":
        return x * 0.5 * (1 + tf.math.erf(x / math.sqrt(2)).numpy())
    expect(name in ("gelu_pytorch_tanh", "gelu_new"), f"config.json has the activation {name}")
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def main(path: str, scratch: str) -> None:
    # Libraries print to stderr, so that stdout has only the results.
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Two replicas; must be set before TensorFlow initialises its devices.
    halves = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], halves)
    # Otherwise half of the time would be spent on garbage collection of objects that stay alive.
    gc.set_threshold(100_000, 50, 100)
    model = Model(path, scratch)
    checks = dict(format_checks(model))
    # Model dirs may have the other formats alone.
    if os.path.isfile(f"{path}/encoder/saved_model.pb"):
        model.load()
        own = {one.__name__.replace("_", " "): functools.partial(one, model) for one in CHECKS}
        checks = own | checks
    gc.freeze()
    for name, check in checks.items():
        try:
            line = {"ok": True, "detail": check()}
        except Failed as failure:
            line = {"ok": False, "detail": str(failure)}
        except Exception as error:  # Any error that a user would get is a finding.
            library = (getattr(error, "name", None) or "").partition(".")[0]
            optional = isinstance(error, ModuleNotFoundError) and library in OPTIONAL
            problem = f"{type(error).__name__}: {str(error)[:300]}"
            missing = f"not checked: {library.replace('_', '-')} is not installed"
            line = {"ok": optional, "detail": missing if optional else problem}
        gc.collect()  # Loaded models are in reference cycles; each holds a copy of the weights.
        print(json.dumps({"check": name, **line}), file=results, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
