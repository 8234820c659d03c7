"""A Hugging Face BERT directory: `config.json`, `vocab.txt` and `model.safetensors`.

The format that `save_pretrained` of a BertModel, BertForMaskedLM or BertForPreTraining writes, also
that of the public multilingual BERT and LaBSE. Pickles (`pytorch_model.bin`) are never read.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors import SafetensorError, safe_open

from labse_tf.config import EncoderConfig, build_section
from labse_tf.errors import InputError
from labse_tf.model import sentence_transformers
from labse_tf.tokenization.vocabulary_readers import (
    TOKENIZER_FILE,
    VOCAB_FILE,
    read_huggingface,
)
from vocab import wordpiece_file

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"

# Hugging Face limits words to 100 characters. Only in scripts without spaces (Thai, Lao, Khmer,
# Burmese) do words come near that, and there a character has three bytes.
MAX_BYTES_PER_WORD = 300

LAYER_NORM_EPSILON = 1e-12  # BertEncoderV2's.
_SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_positions": "max_position_embeddings",
}
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}

# Our names -> theirs. `transformer/layer_I/` corresponds to `encoder.layer.I.`.
_LAYERS = {
    "word_embeddings": "embeddings.word_embeddings",
    "position_embedding": "embeddings.position_embeddings",
    "type_embeddings": "embeddings.token_type_embeddings",
    "embeddings/layer_norm": "embeddings.LayerNorm",
    "self_attention/query": "attention.self.query",
    "self_attention/key": "attention.self.key",
    "self_attention/value": "attention.self.value",
    "self_attention/attention_output": "attention.output.dense",
    "self_attention_layer_norm": "attention.output.LayerNorm",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
    "output_layer_norm": "output.LayerNorm",
    "pooler_transform": "pooler.dense",
    "transform/dense": "cls.predictions.transform.dense",
    "transform/LayerNorm": "cls.predictions.transform.LayerNorm",
    "output_bias": "cls.predictions",
}
_WEIGHTS = {
    "embeddings": "weight",
    "kernel": "weight",
    "gamma": "weight",
    "beta": "bias",
    "bias": "bias",
}


def read_encoder_config(path: str | os.PathLike[str]) -> EncoderConfig:
    """Returns the sizes given in the directory's `config.json`.

    Raises:
      InputError: if it is not such a directory, or the model's layers are not those of BERT.
    """
    path = Path(path)
    _refuse_pickle(path)
    has_tokens = (path / TOKENIZER_FILE).is_file()
    for name in (CONFIG_FILE, WEIGHTS_FILE, *([] if has_tokens else [VOCAB_FILE])):
        if not (path / name).is_file():
            raise InputError(
                f"has no {name}",
                path=path,
                remedy="name the folder that save_pretrained(..., safe_serialization=True) of a "
                "Hugging Face BERT and of its tokenizer wrote",
            )
    try:
        found = json.loads((path / CONFIG_FILE).read_text(encoding="utf-8"))
        model_type, activation = found["model_type"], ACTIVATIONS.get(found["hidden_act"])
        pooler = sentence_transformers.find_pooler(path)
        sizes = {ours: _size(found, theirs) for ours, theirs in _SIZES.items()}
        sizes["pooling"] = pooler.pooling if pooler else "cls"
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"is not a BERT configuration ({error!r})", path=path / CONFIG_FILE, remedy="correct it"
        ) from error
    positions = found.get("position_embedding_type", "absolute")
    if model_type != "bert" or activation is None or positions != "absolute":
        raise InputError(
            f"describes a {model_type} with {found['hidden_act']} and {positions} positions",
            path=path / CONFIG_FILE,
            remedy=f"use a bert with one of {', '.join(ACTIVATIONS)} and absolute positions",
        )
    sizes["activation"] = activation
    config = build_section(EncoderConfig, sizes, path / CONFIG_FILE)
    _check_computation(path, found)
    with _open_weights(path / WEIGHTS_FILE):
        pass  # If it is damaged, the error says so rather than that the sizes differ.
    # A weight has a byte or more.
    layer = 4 * config.hidden_size + 2 * config.intermediate_size
    rows = config.vocab_size + config.max_positions + config.num_layers * layer
    weights, held = rows * config.hidden_size, path / WEIGHTS_FILE
    if weights > held.stat().st_size or config.hidden_size % config.num_attention_heads:
        raise InputError(
            f"describes {weights:,} weights and {config.num_attention_heads} heads in "
            f"{config.hidden_size}, not those of {WEIGHTS_FILE}",
            path=path / CONFIG_FILE,
            remedy="use the files of a single model",
        )
    read_huggingface(path)
    return config


def _size(found: dict, name: str) -> int:
    size = found[name]
    if type(size) is not int or size < 1:
        raise ValueError(f"{name} is {size}")
    return size


def vocab_file(path: Path) -> Path:
    """Returns the path of the vocabulary; if only `tokenizer.json` has it, of a copy."""
    if (path / VOCAB_FILE).is_file():
        return path / VOCAB_FILE
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    copy = Path(folder.name, VOCAB_FILE)
    wordpiece_file.write(copy, read_huggingface(path))
    return copy


def _check_computation(path: Path, found: dict) -> None:
    """Rejects models that our graphs would compute differently from Hugging Face."""
    if (epsilon := found.get("layer_norm_eps", LAYER_NORM_EPSILON)) != LAYER_NORM_EPSILON:
        raise InputError(
            f"has layer_norm_eps {epsilon}; LaBSE has {LAYER_NORM_EPSILON}",
            path=path / CONFIG_FILE,
            remedy="use LaBSE or another BERT with that value",
        )
    if found.get("is_decoder"):
        raise InputError("is a decoder", path=path / CONFIG_FILE, remedy="use an encoder")
    for name in ("tokenizer_config.json", "sentence_bert_config.json"):
        if (path / name).is_file():
            try:
                told = json.loads((path / name).read_text("utf-8"))
                lower = told.get("do_lower_case") or told.get("strip_accents")
                lower = lower or not told.get("tokenize_chinese_chars", True)
            except (ValueError, AttributeError) as error:
                raise InputError(
                    f"cannot be read ({error})", path=path / name, remedy="fetch it again"
                ) from error
            if lower:
                raise InputError(
                    "says do_lower_case, strip_accents or not tokenize_chinese_chars",
                    path=path / name,
                    remedy="use a cased model, like LaBSE",
                )


def restore(
    path: str | os.PathLike[str], variables: list[tf.Variable]
) -> tuple[dict[str, str], list[str]]:
    """Assigns the directory's weights to the variables of an encoder and of an MLM head.

    In a sentence-transformers directory, the pooler is the Dense module; the identity if there is
    none, and without a bias if that has none.

    Returns:
      Name of each assigned variable -> name of its weight in the file; and the names of unused
      weights.

    Raises:
      InputError: for a damaged file, or weights of the wrong shape (the message names each).
    """
    path = Path(path)
    pooler = sentence_transformers.find_pooler(path)
    dense = pooler.folder if pooler else None
    files = {"": path / WEIGHTS_FILE}
    if dense:
        _refuse_pickle(path / dense)
        files[f"{dense}/"] = path / dense / WEIGHTS_FILE
    taken, misfits = {}, []
    with contextlib.ExitStack() as stack:
        opened = {
            prefix: stack.enter_context(_open_weights(file)) for prefix, file in files.items()
        }
        places = {
            prefix + name: (weights, name)
            for prefix, weights in opened.items()
            for name in weights.keys()  # noqa: SIM118  It is not a dict.
        }
        for variable in variables:
            name = next(
                (
                    one
                    for one in _names_of(variable, dense, is_sentences=pooler is not None)
                    if one in places
                ),
                None,
            )
            if name is None and pooler and "pooler_transform" in variable.name:
                is_kernel = "kernel" in variable.name
                if is_kernel and dense:
                    continue
                variable.assign(tf.eye(variable.shape[0]) if is_kernel else tf.zeros_like(variable))
                taken[variable.name] = "the identity"
            if name is None:
                continue
            weights, stored = places[name]
            value = tf.cast(weights.get_tensor(stored), tf.float32).numpy()
            taken[variable.name] = name
            if not _assign(variable, value):
                misfits.append(f"{name} {list(value.shape)} for {variable.shape.as_list()}")
    if misfits:
        raise InputError(
            f"has weights whose shapes differ from {CONFIG_FILE}: {', '.join(misfits)}",
            path=path,
            remedy="use the files of a single model",
        )
    return taken, sorted(set(places) - set(taken.values()))


def to_tensors(variables: list[tf.Variable]) -> dict[str, np.ndarray]:
    """Returns an encoder's weights with the names and shapes of a BertModel."""
    return {_own_name(variable): _to_theirs(variable).astype(np.float32) for variable in variables}


def _refuse_pickle(folder: Path) -> None:
    pickles = sorted(file.name for file in folder.glob("*.bin"))
    if pickles and not (folder / WEIGHTS_FILE).is_file():
        raise InputError(
            f"has its weights as a pickle ({pickles[0]}), which is never loaded: it could run code",
            path=folder,
            remedy=f"convert it to {WEIGHTS_FILE} with the safetensors package",
        )


@contextlib.contextmanager
def _open_weights(file: Path) -> Iterator[safe_open]:
    try:
        with safe_open(file, framework="tf") as weights:
            yield weights
    except (OSError, SafetensorError) as error:
        raise InputError(f"is damaged ({error})", path=file, remedy="fetch it again") from error


def _names_of(variable: tf.Variable, dense: str | None, *, is_sentences: bool) -> Iterator[str]:
    name = _own_name(variable)
    layer, _, weight = name.rpartition(".")
    if is_sentences and layer == "pooler.dense":
        yield f"{dense}/linear.{weight}"
        return
    # A BertModel saved on its own has no prefix; before 2019 layer norms had TensorFlow's names.
    old = variable.name.removesuffix(":0").rpartition("/")[2]
    for model in ("bert.", ""):
        yield model + name
        if old in ("gamma", "beta"):
            yield f"{model}{layer}.{old}"
    if layer == "cls.predictions":
        yield "cls.predictions.decoder.bias"


def _own_name(variable: tf.Variable) -> str:
    # `encoder/transformer/layer_3/output/kernel:0`
    _, _, name = variable.name.removesuffix(":0").partition("/")
    prefix = ""
    if name.startswith("transformer/layer_"):
        _, layer, name = name.split("/", 2)
        prefix = f"encoder.layer.{layer.removeprefix('layer_')}."
    layer, _, weight = name.rpartition("/")
    return f"{prefix}{_LAYERS[layer]}.{_WEIGHTS[weight]}"


def _assign(variable: tf.Variable, value: np.ndarray) -> bool:
    """Assigns the value if its shape fits; returns whether it does."""
    if "kernel" in variable.name:
        value = value.T  # Theirs are [out, in]; heads are contiguous in both.
    if list(value.shape) not in _shapes(variable):
        return False
    variable.assign(value.reshape(variable.shape))
    return True


def _to_theirs(variable: tf.Variable) -> np.ndarray:
    value = variable.numpy()
    if "kernel" in variable.name:
        # Attention inputs are [in, heads, head size], its output is [heads, head size, out].
        inner = "attention_output" in variable.name
        rows = math.prod(value.shape[:2] if inner else value.shape[:1])
        return np.ascontiguousarray(value.reshape(rows, -1).T)
    return value.reshape(-1) if "bias" in variable.name else value


def _shapes(variable: tf.Variable) -> list[list[int]]:
    # Ours may have a separate axis for heads.
    shape = variable.shape.as_list()
    flat = [[math.prod(shape[:axis]), math.prod(shape[axis:])] for axis in range(1, len(shape))]
    return [shape, [math.prod(shape)], *flat]
