"""A Hugging Face BERT directory: `config.json`, `vocab.txt` and `model.safetensors`.

What `save_pretrained` of a BertModel, BertForMaskedLM or BertForPreTraining writes, of the public
multilingual BERT and LaBSE too. Pickles (`pytorch_model.bin`) are never read.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
from safetensors import SafetensorError, safe_open

from labse_tf.config import EncoderConfig
from labse_tf.errors import InputError

CONFIG_FILE, WEIGHTS_FILE, VOCAB_FILE = "config.json", "model.safetensors", "vocab.txt"

_ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}

# Ours -> theirs. Below `transformer/layer_I/` stands `encoder.layer.I.`.
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
    """Returns the sizes that the directory's `config.json` tells.

    Raises:
      InputError: if it is no such directory, or of a model whose layers are not BERT's.
    """
    path = Path(path)
    for name in (CONFIG_FILE, WEIGHTS_FILE, VOCAB_FILE):
        if not (path / name).is_file():
            raise InputError(
                f"has no {name}",
                path=path,
                remedy="name the folder that save_pretrained(..., safe_serialization=True) of a "
                "Hugging Face BERT and of its slow tokenizer wrote",
            )
    try:
        found = json.loads((path / CONFIG_FILE).read_text(encoding="utf-8"))
        model_type, activation = found["model_type"], _ACTIVATIONS.get(found["hidden_act"])
        config = EncoderConfig(
            vocab_size=int(found["vocab_size"]),
            hidden_size=int(found["hidden_size"]),
            num_layers=int(found["num_hidden_layers"]),
            num_attention_heads=int(found["num_attention_heads"]),
            intermediate_size=int(found["intermediate_size"]),
            max_positions=int(found["max_position_embeddings"]),
            activation=activation or "",
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"is no BERT configuration ({error!r})", path=path / CONFIG_FILE, remedy="mend it"
        ) from error
    positions = found.get("position_embedding_type", "absolute")
    if model_type != "bert" or activation is None or positions != "absolute":
        raise InputError(
            f"is of a {model_type} with {found['hidden_act']} and {positions} positions",
            path=path / CONFIG_FILE,
            remedy=f"take a bert with one of {', '.join(_ACTIVATIONS)} and absolute positions",
        )
    return config


def restore(
    path: str | os.PathLike[str], variables: list[tf.Variable]
) -> tuple[dict[str, str], list[str]]:
    """Assigns the directory's weights to the variables of an encoder and of an MLM head.

    Returns:
      Of each variable that was assigned: its name -> the weight's name in the file; and the weights
      that no variable took.

    Raises:
      InputError: for a damaged file, or a weight whose shape does not fit.
    """
    file = Path(path) / WEIGHTS_FILE
    taken = {}
    try:
        with safe_open(file, framework="tf") as weights:
            names = set(weights.keys())
            for variable in variables:
                name = next((one for one in _names_of(variable) if one in names), None)
                if name is not None:
                    value = tf.cast(weights.get_tensor(name), tf.float32).numpy()
                    _assign(variable, value, name, file)
                    taken[variable.name] = name
    except SafetensorError as error:
        raise InputError(f"is damaged ({error})", path=file, remedy="fetch it again") from error
    return taken, sorted(names - set(taken.values()))


def _names_of(variable: tf.Variable) -> Iterator[str]:
    # `encoder/transformer/layer_3/output/kernel:0`
    _, _, name = variable.name.removesuffix(":0").partition("/")
    prefix = ""
    if name.startswith("transformer/layer_"):
        _, layer, name = name.split("/", 2)
        prefix = f"encoder.layer.{layer.removeprefix('layer_')}."
    layer, _, weight = name.rpartition("/")
    theirs = f"{prefix}{_LAYERS[layer]}.{_WEIGHTS[weight]}"
    # A BertModel saved by itself has no prefix; before 2019 layer norms had TensorFlow's names.
    for model in ("bert.", ""):
        yield model + theirs
        if weight in ("gamma", "beta"):
            yield f"{model}{prefix}{_LAYERS[layer]}.{weight}"
    if layer == "output_bias":
        yield "cls.predictions.decoder.bias"


def _assign(variable: tf.Variable, value: np.ndarray, name: str, file: Path) -> None:
    if "kernel" in variable.name:
        value = value.T  # Theirs are [out, in]; heads lie one after another in both.
    shape = variable.shape.as_list()
    # Ours may have the heads as an axis of its own.
    flat = [[math.prod(shape[:axis]), math.prod(shape[axis:])] for axis in range(1, len(shape))]
    if list(value.shape) not in (shape, [math.prod(shape)], *flat):
        raise InputError(
            f"{name} has the shape {list(value.shape)}, {variable.name} {list(variable.shape)}",
            path=file,
            remedy="its config.json and its weights do not belong together",
        )
    variable.assign(value.reshape(variable.shape))
