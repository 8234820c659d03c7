"""Model dirs as files: validation, finding the encoder, hashing; without TensorFlow."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from labse_tf.errors import InputError
from labse_tf.files.hashing import sha256_of_files
from labse_tf.files.staging import input_path

SAVED_MODELS = ("preprocessor", "encoder")
# Value of "tokenizer" in the model.json of LASER's encoder of 2018. There is no preprocessor: text
# is prepared in Python, by files in the folder `tokenizer`.
LASER_2018 = "laser-2018"
NO_LANGUAGE = "splits text of all languages alike"
ONNX = ".onnx"
ENCODER_FILES = (ONNX, ".tflite")
VOCABULARY = "vocab.txt"


def check_saved_models(path: str | os.PathLike[str]) -> None:
    """Raises InputError unless this is a model dir with a preprocessor and an encoder."""
    if is_laser_2018(path):
        raise InputError(
            "is LASER's encoder of 2018, whose text is prepared in Python: it has no preprocessor",
            path=path,
            remedy="use it with this package: labse_tf.load, labse embed, eval, mine, score",
        )
    _check(path, SAVED_MODELS)


def is_laser_2018(path: str | os.PathLike[str]) -> bool:
    """Returns whether this is a model dir of LASER's encoder of 2018."""
    return describe(Path(path)).get("tokenizer") == LASER_2018


def is_model_dir(path: str | os.PathLike[str]) -> bool:
    """Returns whether a folder has the SavedModels of a model dir."""
    return all(Path(path, name, "saved_model.pb").is_file() for name in _saved_models(path))


def _saved_models(path: str | os.PathLike[str]) -> tuple[str, ...]:
    return SAVED_MODELS[1:] if is_laser_2018(path) else SAVED_MODELS


def _check(path: str | os.PathLike[str], names: tuple[str, ...]) -> None:
    for name in names:
        if not Path(path, name, "saved_model.pb").is_file():
            raise InputError(
                f"is not a model dir: it has no {name}/saved_model.pb",
                path=path,
                remedy="name the --out of `labse export`, with hub among its formats",
            )


def find_model_dir(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Returns a model dir and the encoder in it that `path` refers to.

    Args:
      path: the model dir, for its SavedModel `encoder`; or an encoder file in one of its folders.

    Raises:
      InputError: if there is no such model dir or encoder.
    """
    path = Path(input_path(path))
    if path.suffix not in ENCODER_FILES or path.is_dir():
        _check(path, _saved_models(path))
        return path, path / "encoder"
    if not path.is_file():
        raise InputError(
            "no such file", path=path, remedy="export the model with --format hub,onnx,lite"
        )
    model_dir = path.absolute().parent.parent
    is_whole = (model_dir / "preprocessor" / "saved_model.pb").is_file()
    if not (is_whole or is_laser_2018(model_dir) or _has_vocabulary(model_dir, path)):
        raise InputError(
            "is not in a model dir: there is no ../preprocessor",
            path=path,
            remedy="export the model with hub among its formats",
        )
    return model_dir, path


def _has_vocabulary(model_dir: Path, encoder: Path) -> bool:
    """Returns whether an ONNX file is in a model dir that was exported without a preprocessor."""
    return encoder.suffix == ONNX and (model_dir / VOCABULARY).is_file()


def find_vocabulary(model_dir: Path) -> Path:
    """Returns the path of a model dir's vocabulary, which need not exist."""
    alone = model_dir / VOCABULARY
    return alone if alone.is_file() else model_dir / "encoder" / "assets" / VOCABULARY


def describe(model_dir: Path) -> dict[str, Any]:
    """Returns the content of `model.json`, or an empty dict if there is none that can be read."""
    try:
        return dict(json.loads((model_dir / "model.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def num_layers(model_dir: Path) -> int | None:
    """Returns the encoder's number of layers; None if the model dir does not say."""
    return (describe(model_dir).get("encoder") or {}).get("num_layers")


def hash_model(path: str | os.PathLike[str]) -> str:
    """Returns a SHA-256, in hex, of all files of the preprocessor, or tokeniser, and the encoder.

    Copies of a model dir have the same hash; models with different embeddings have different ones.

    Args:
      path: as for `find_model_dir`.

    Raises:
      InputError: as `find_model_dir`.
    """
    model_dir, encoder = find_model_dir(path)
    before = "tokenizer" if is_laser_2018(model_dir) else "preprocessor"
    files = [*(model_dir / before).rglob("*"), *encoder.rglob("*")]
    if not (model_dir / before).is_dir():
        files.append(model_dir / VOCABULARY)
    if encoder.is_file():
        # Large ONNX models keep their weights in a separate file: model.onnx_data.
        files += (one for one in encoder.parent.iterdir() if one.name.startswith(encoder.name))
    files = [file.absolute() for file in files if file.is_file()]
    return sha256_of_files(files, root=model_dir.absolute())
