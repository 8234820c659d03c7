"""The JSON record of an evaluation: encoder, data, settings, scores and library versions."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.files.hashing import sha256_of_files

# Module -> the package with its version. Only loaded modules can have affected the result.
_PACKAGES = {
    "labse_tf": "labse_tf",
    "numpy": "numpy",
    "scipy": "scipy",
    "faiss": "faiss-cpu",
    "tensorflow": "tensorflow",
    "tensorflow_text": "tensorflow-text",
    "torch": "torch",
    "transformers": "transformers",
    "sentence_transformers": "sentence-transformers",
}


_NEEDED = {"task", "encoder", "data", "settings"}


def make_record(
    task: str,
    encoder: Encoder,
    data: str | os.PathLike[str],
    files: Iterable[str | os.PathLike[str]],
    *,
    primary_metric: str,
    directions: Iterable[str],
    settings: dict[str, Any],
    scores: dict[str, Any],
) -> dict[str, Any]:
    """Returns the record of a task; to be called after all texts have been encoded.

    Args:
      task: the name of the task.
      encoder: if it has `facts()`, as encoders from `open_encoder` have, they are recorded.
      data: the folder that the user gave.
      files: the files in it that were read.
      primary_metric: the key of the main figure in `scores`.
      directions: search directions, such as "xx -> en".
      settings: the task's options.
      scores: the task's own keys.
    """
    files = [os.fspath(file) for file in files]
    root = data if os.path.isdir(data) else os.path.dirname(data) or "."
    return {
        "task": task,
        "primary_metric": primary_metric,
        primary_metric: scores[primary_metric],
        "encoder": encoder_facts(encoder),
        "data": {
            "path": os.fspath(data),
            "files": len(files),
            "sha256": sha256_of_files(files, root=root),
        },
        "directions": list(directions),
        "settings": settings,
        "versions": loaded_versions(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        **scores,
    }


def read_record(path: Path) -> dict[str, Any]:
    """Reads a record that was written as JSON.

    Raises:
      InputError: if it cannot be read, or is not a record.
    """
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be read as a record ({error})", path=path, remedy="make it by `labse eval`"
        ) from error
    if not isinstance(record, dict) or not record.keys() >= _NEEDED:
        raise InputError("is not a record of a task", path=path, remedy="make it by `labse eval`")
    return record


def encoder_facts(encoder: Encoder) -> dict[str, Any]:
    """Returns the encoder's `facts()`, or its class name if it has none."""
    facts = getattr(encoder, "facts", None)
    return facts() if callable(facts) else {"name": type(encoder).__name__}


def loaded_versions() -> dict[str, str]:
    """Returns the versions of Python and of the loaded libraries."""
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for module, package in _PACKAGES.items():
        if module in sys.modules:
            try:
                versions[module] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                versions[module] = str(getattr(sys.modules[module], "__version__", "unknown"))
    return versions
