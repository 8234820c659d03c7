"""The weights of LASER's published encoders, as those of `BiLstmEncoder`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from labse_tf.config import BILSTM, MAX, EncoderConfig
from labse_tf.errors import InputError
from labse_tf.systems.laser.bilstm_encoder import BiLstmEncoder
from labse_tf.systems.laser.torch_files import UnknownNameError, read_torch_file

# LASER itself sets no limit. Longer texts are cut.
MAX_POSITIONS = 512
_REMEDY = "name laser2.pt or bilstm.93langs.2018-12-26.pt"
# Modules that a checkpoint of fairseq names.
_OF_FAIRSEQ = ("argparse", "omegaconf", "fairseq")


class LaserWeights(NamedTuple):
    """What a published file has.

    Attributes:
      config: the encoder's sizes.
      weights: by the names of our variables.
      dictionary: token -> id.
    """

    config: EncoderConfig
    weights: dict[str, np.ndarray]
    dictionary: dict[str, int]


def read_laser(path: str | os.PathLike[str]) -> LaserWeights:
    """Reads laser2.pt, the encoder of 2018, or another of their layout.

    Raises:
      InputError: if it is another file (a LASER3, a checkpoint of fairseq), or damaged.
    """
    try:
        content = read_torch_file(path)
    except UnknownNameError as error:
        if error.name.split(".")[0] not in _OF_FAIRSEQ:
            raise
        raise InputError(
            f"is a checkpoint of fairseq (it names {error.name}), such as LASER3, whose encoder is "
            "a Transformer",
            path=path,
            remedy=_REMEDY,
        ) from error
    parts = ("params", "model", "dictionary")
    if not isinstance(content, dict) or not all(
        isinstance(content.get(one), dict) for one in parts
    ):
        is_laser3 = isinstance(content, dict) and "cfg" in content
        raise InputError(
            "is a LASER3, whose encoder is a Transformer"
            if is_laser3
            else "is no encoder of LASER",
            path=path,
            remedy=_REMEDY,
        )
    params, dictionary = content["params"], content["dictionary"]
    sizes = ("num_embeddings", "embed_dim", "hidden_size", "num_layers")
    positive = all(isinstance(params.get(one), int) and params[one] > 0 for one in sizes)
    if not positive or params.get("bidirectional") is not True or params.get("padding_idx") != 1:
        raise InputError(
            f"has other parameters than LASER's encoders: {params}",
            path=path,
            remedy=_REMEDY,
        )
    config = EncoderConfig(
        network=BILSTM,
        vocab_size=params["num_embeddings"],
        embedding_size=params["embed_dim"],
        hidden_size=2 * params["hidden_size"],
        num_layers=params["num_layers"],
        max_positions=MAX_POSITIONS,
        dropout=0.0,
        initializer_range=0.1,
        pooling=MAX,
    )
    return LaserWeights(config, _renamed(content["model"], config, path), dict(dictionary))


def _renamed(
    model: Mapping[str, Any], config: EncoderConfig, path: str | os.PathLike[str]
) -> dict[str, np.ndarray]:
    """Returns our weights: transposed, and of the two biases of PyTorch the sum."""
    left = dict(model)

    def take(name: str, *shape: int) -> np.ndarray:
        found = left.pop(name, None)
        if getattr(found, "shape", None) != shape:
            raise InputError(
                f"has no {name} of {list(shape)}",
                path=path,
                remedy="fetch it again, or name another file",
            )
        return found.astype(np.float32)

    table = take("embed_tokens.weight", config.vocab_size, config.token_size)
    weights = {"encoder/word_embeddings/embeddings:0": table}
    units, width = config.hidden_size // 2, config.token_size
    for layer in range(config.num_layers):
        for direction, suffix in (("forward", ""), ("backward", "_reverse")):
            theirs = f"l{layer}{suffix}"
            ours = f"encoder/lstm/layer_{layer}/{direction}/lstm_cell"
            biases = [take(f"lstm.bias_{kind}_{theirs}", 4 * units) for kind in ("ih", "hh")]
            weights |= {
                f"{ours}/kernel:0": take(f"lstm.weight_ih_{theirs}", 4 * units, width).T,
                f"{ours}/recurrent_kernel:0": take(f"lstm.weight_hh_{theirs}", 4 * units, units).T,
                f"{ours}/bias:0": sum(biases),
            }
        width = config.hidden_size
    if left:
        raise InputError(
            f"has weights that LASER's encoders lack: {', '.join(sorted(left))}",
            path=path,
            remedy=_REMEDY,
        )
    return weights


def assign(encoder: BiLstmEncoder, weights: Mapping[str, np.ndarray]) -> None:
    """Gives an encoder of the same sizes these weights."""
    for variable in encoder.variables:
        variable.assign(weights[variable.name])
