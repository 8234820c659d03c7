"""Loads the encoder of a model dir for further training."""

from __future__ import annotations

import json
import os
from pathlib import Path

import tensorflow as tf

from labse_tf.config import EncoderConfig, build_section
from labse_tf.errors import InputError

FACTS_FILE = "model.json"
VOCAB_FILE = Path("encoder/assets/vocab.txt")


def read_encoder_config(path: str | os.PathLike[str]) -> EncoderConfig:
    """Returns the encoder's sizes.

    Raises:
      InputError: if the model dir is incomplete or damaged, or cannot be trained.
    """
    path = Path(path)
    for name in (VOCAB_FILE, Path("encoder/saved_model.pb")):
        if not (path / name).is_file():
            raise InputError(f"has no {name}", path=path, remedy="export the model again")
    try:
        facts = json.loads((path / FACTS_FILE).read_text(encoding="utf-8"))
        config, table = dict(facts["encoder"]), facts.get("table", "float32")
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"is not what `labse export` writes ({error!r})",
            path=path / FACTS_FILE,
            remedy="export the model again",
        ) from error
    if facts.get("tokenizer", "").startswith("laser"):
        raise InputError(
            "has LASER's tokeniser, which training does not know",
            path=path,
            remedy="use it as it is: to embed, to mine, to evaluate",
        )
    if table != "float32":
        raise InputError(
            f"has an embedding table of {table}, which cannot be trained",
            path=path,
            remedy="use the model from which it was exported",
        )
    return build_section(EncoderConfig, config, path / FACTS_FILE)


def vocab_file(path: Path) -> Path:
    """Returns the path of the vocabulary."""
    return path / VOCAB_FILE


def restore(
    path: str | os.PathLike[str], variables: list[tf.Variable]
) -> tuple[dict[str, str], list[str]]:
    """Assigns the encoder's weights to the variables of the same names.

    Returns:
      Name of each assigned variable -> name of its weight; and the names of unused weights.

    Raises:
      InputError: if the SavedModel cannot be read.
    """
    try:
        loaded = tf.saved_model.load(str(Path(path) / "encoder"))
    except (OSError, ValueError, tf.errors.OpError) as error:
        raise InputError(
            f"cannot be read ({str(error).splitlines()[0]})",
            path=Path(path) / "encoder",
            remedy="export the model again",
        ) from error
    weights = {weight.name: weight for weight in loaded.variables}
    if hasattr(loaded, "mlm"):
        weights |= {weight.name: weight for weight in loaded.mlm.variables}
    taken = {}
    for variable in variables:
        if variable.name in weights:
            variable.assign(weights[variable.name])
            taken[variable.name] = variable.name
    return taken, sorted(set(weights) - set(taken))
