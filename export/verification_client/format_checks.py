"""Checks of Hugging Face's, ONNX's and LiteRT's files: they give the training graph's vectors.

The sentences, their token ids and their vectors are in `verification/`, so nothing else is needed.
"""

from __future__ import annotations

import glob
import json
import math
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from interface import INPUTS, SPECIAL_OF, Failed, expect

# Least cosines to the training graph's vectors: sums in another order, and weights in int8.
_FLOAT, _INT8 = 0.9999, 0.95
_ONNX_NAMES = ("input_ids", "attention_mask", "token_type_ids")
_ERF, _TANH = "gelu", "gelu_pytorch_tanh"


class Expected(NamedTuple):
    """The model dir, its facts, and its sentences: int32 `[n, length]`, float32 `[n, dim]`."""

    path: str
    facts: dict
    sentences: list[str]
    ids: np.ndarray
    vectors: np.ndarray

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        padding = SPECIAL_OF[self.facts.get("tokenizer", "wordpiece")]["padding_id"]
        return self.ids, (self.ids != padding).astype(np.int32), 0 * self.ids


def read_expected(path: str) -> Expected:
    with open(f"{path}/model.json", encoding="utf-8") as file:
        facts = json.load(file)
    with open(f"{path}/verification/sentences.txt", encoding="utf-8", newline="\n") as file:
        sentences = file.read().split("\n")[:-1]
    ids, vectors = (np.load(f"{path}/verification/{name}.npy") for name in ("word_ids", "vectors"))
    return Expected(path, facts, sentences, ids, vectors)


def checks_of(path: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yields the name of each check, and the check."""
    if not os.path.isfile(f"{path}/verification/word_ids.npy"):
        return  # Exported before there was such a file.
    found = read_expected(path)
    for file in sorted(glob.glob(f"{glob.escape(path)}/onnx/*.onnx")):
        yield f"onnx {os.path.basename(file)}", lambda file=file: _onnx(found, file)
    if os.path.isfile(f"{path}/onnx/tokenizer.json"):
        yield "onnx tokens", lambda: _rust_tokens(found)
    for file in sorted(glob.glob(f"{glob.escape(path)}/lite/*.tflite")):
        yield f"lite {os.path.basename(file)}", lambda file=file: _lite(found, file)
    if os.path.isfile(f"{path}/config.json"):
        yield "huggingface weights", lambda: _huggingface(found)
        yield "huggingface tokens", lambda: _huggingface_tokens(found)
    if os.path.isfile(f"{path}/0_StaticEmbedding/model.safetensors"):
        yield "huggingface weights", lambda: _static_embedding(found)


def _compare(found: Expected, vectors: np.ndarray, least: float) -> str:
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors * found.vectors).sum(axis=1)
    worst = int(cosines.argmin())
    message = f"'{found.sentences[worst]}' has a cosine of {cosines[worst]:.5f} to its vector"
    expect(bool(cosines[worst] >= least), message)
    return f"cosines from {cosines[worst]:.5f}"


def _onnx(found: Expected, file: str) -> str:
    try:
        import onnxruntime
    except ImportError:
        return "not checked: onnxruntime is not installed"
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    inputs = (array.astype(np.int64) for array in found.inputs)
    vectors = session.run(["default"], dict(zip(_ONNX_NAMES, inputs, strict=True)))[0]
    return _compare(found, vectors, _INT8 if "int8" in file else _FLOAT)


def _lite(found: Expected, file: str) -> str:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        return "not checked: ai-edge-litert is not installed"
    run = Interpreter(file).get_signature_runner()
    vectors = run(**dict(zip(INPUTS, found.inputs, strict=True)))["default"]
    return _compare(found, vectors, _INT8)


def _load(path: str) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    return load_file(path)


def _static_embedding(found: Expected) -> str:
    [table] = _load(f"{found.path}/0_StaticEmbedding/model.safetensors").values()
    special = set(SPECIAL_OF["wordpiece"].values())
    rows = [[token for token in row if token not in special] for row in found.ids.tolist()]
    return _compare(found, np.stack([table[row].mean(axis=0) for row in rows]), _FLOAT)


def _rust_tokens(found: Expected) -> str:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return "not checked: tokenizers is not installed"
    return _compare_tokens(found, Tokenizer.from_file(f"{found.path}/onnx/tokenizer.json"))


def _huggingface_tokens(found: Expected) -> str:
    try:
        from tokenizers import BertWordPieceTokenizer
    except ImportError:
        return "not checked: tokenizers is not installed"
    settings = {"lowercase": False, "strip_accents": False, "handle_chinese_chars": True}
    tokenizer = BertWordPieceTokenizer(f"{found.path}/vocab.txt", **settings)
    tokenizer.enable_truncation(found.ids.shape[1])
    return _compare_tokens(found, tokenizer)


def _compare_tokens(found: Expected, tokenizer) -> str:
    for sentence, row in zip(found.sentences, found.ids.tolist(), strict=True):
        ids = tokenizer.encode(sentence).ids
        same = ids == row[: len(ids)] and not any(row[len(ids) :])
        expect(same, f"'{sentence}' has other ids")
    return f"the ids of {len(found.sentences)} sentences"


def _huggingface(found: Expected) -> str:
    """BERT in NumPy (Devlin et al. 2019), with the pooling, dense layer and norm of its modules."""
    tensors = _load(f"{found.path}/model.safetensors")
    dense = _load(f"{found.path}/2_Dense/model.safetensors")
    config, pooling, layer = (
        _read(f"{found.path}/{name}")
        for name in ("config.json", "1_Pooling/config.json", "2_Dense/config.json")
    )
    vectors = []
    for row in found.ids:
        sequence = _bert(tensors, config, row[row != 0])
        pooled = sequence.mean(axis=0) if pooling["pooling_mode_mean_tokens"] else sequence[0]
        pooled = dense["linear.weight"] @ pooled + dense["linear.bias"]
        vectors.append(np.tanh(pooled) if layer["activation_function"].endswith("Tanh") else pooled)
    return _compare(found, np.stack(vectors), _FLOAT)


def _read(path: str) -> dict:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _bert(tensors: dict[str, np.ndarray], config: dict, ids: np.ndarray) -> np.ndarray:
    """Returns the last layer's output, `[length, width]`, of one sequence of ids."""
    heads, name = config["num_attention_heads"], "embeddings"

    def dense(name: str, x: np.ndarray) -> np.ndarray:
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + config["layer_norm_eps"])
        return x * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    x = tensors[f"{name}.word_embeddings.weight"][ids]
    x = x + tensors[f"{name}.position_embeddings.weight"][: len(ids)]
    x = norm(f"{name}.LayerNorm", x + tensors[f"{name}.token_type_embeddings.weight"][0])
    for number in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        query, key, value = (
            dense(f"{name}.attention.self.{part}", x).reshape(len(ids), heads, -1)
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
    if name == _ERF:
        return x * 0.5 * (1 + tf.math.erf(x / math.sqrt(2)).numpy())
    if name not in (_TANH, "gelu_new"):
        raise Failed(f"config.json has the activation {name}")
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
