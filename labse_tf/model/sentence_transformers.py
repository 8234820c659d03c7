"""Pooling in a sentence-transformers directory: `modules.json` and the modules' configs.

LaBSE's pooling is a Dense layer with tanh over [CLS]: BERT's pooler, which such a directory keeps
in a separate folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from labse_tf.errors import InputError

MODULES_FILE, MODULE_CONFIG_FILE = "modules.json", "config.json"


def find_pooler(path: Path) -> str | None:
    """Returns the folder of the Dense module, None if not a sentence-transformers directory.

    Raises:
      InputError: if its pooling is not that of LaBSE.
    """
    if not (path / MODULES_FILE).is_file():
        return None
    modules = dict(_read_modules(path))
    pooling = _read(path / modules["Pooling"] / MODULE_CONFIG_FILE) if "Pooling" in modules else {}
    modes = [
        name for name, chosen in pooling.items() if name.startswith("pooling_mode_") and chosen
    ]
    modes += [pooling["pooling_mode"]] if "pooling_mode" in pooling else []
    if modes not in (["pooling_mode_cls_token"], ["cls"]):
        raise InputError(
            f"pools by {' and '.join(map(str, modes)) or 'nothing'}; LaBSE pools by [CLS]",
            path=path / MODULES_FILE,
            remedy="use a model with LaBSE's pooling",
        )
    if "Dense" not in modules:
        raise InputError(
            "has no Dense module over [CLS], which is LaBSE's pooler",
            path=path / MODULES_FILE,
            remedy="use a model with LaBSE's pooling",
        )
    dense = _read(path / modules["Dense"] / MODULE_CONFIG_FILE)
    if not str(dense.get("activation_function")).endswith("Tanh"):
        raise InputError(
            f"has the activation {dense.get('activation_function')}; LaBSE's pooler has tanh",
            path=path / modules["Dense"] / MODULE_CONFIG_FILE,
            remedy="use a model with LaBSE's pooling",
        )
    return modules["Dense"]


def _read_modules(path: Path) -> list[tuple[str, str]]:
    try:
        modules = [
            (one["type"].rpartition(".")[2], one["path"])
            for one in json.loads((path / MODULES_FILE).read_text("utf-8"))
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"is not a list of modules ({error!r})", path=path / MODULES_FILE, remedy="correct it"
        ) from error
    for _, folder in modules:
        if not (path / folder).resolve().is_relative_to(path.resolve()):
            raise InputError(
                f"names the folder {folder}, which is outside the model's folder",
                path=path / MODULES_FILE,
                remedy="correct it",
            )
    return modules


def _read(file: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"cannot be read ({error})", path=file, remedy="fetch it again") from error
