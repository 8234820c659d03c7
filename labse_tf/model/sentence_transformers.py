"""Pooling in a sentence-transformers directory: `modules.json` and the modules' configs.

LaBSE's pooling is a Dense layer with tanh over [CLS]: BERT's pooler, which such a directory keeps
in a separate folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from labse_tf.errors import InputError

MODULES_FILE, MODULE_CONFIG_FILE = "modules.json", "config.json"


# What each `encoder.pooling` is called there.
POOLING_MODES = {"cls": "cls_token", "mean": "mean_tokens"}
ACTIVATION_OF_POOLER = {
    "cls": "torch.nn.modules.activation.Tanh",
    "mean": "torch.nn.modules.linear.Identity",
}
# Newer versions write one short name instead of a flag for each mode.
_POOLING_OF_MODE = {f"pooling_mode_{mode}": pooling for pooling, mode in POOLING_MODES.items()} | {
    pooling: pooling for pooling in POOLING_MODES
}


class Pooler(NamedTuple):
    """The folder of the Dense module, and the `encoder.pooling` that it follows."""

    folder: str
    pooling: str


def find_pooler(path: Path) -> Pooler | None:
    """Returns the pooler, None if not a sentence-transformers directory.

    Raises:
      InputError: if its pooling is neither that of LaBSE nor a mean with a linear layer.
    """
    if not (path / MODULES_FILE).is_file():
        return None
    modules = dict(_read_modules(path))
    found = _read(path / modules["Pooling"] / MODULE_CONFIG_FILE) if "Pooling" in modules else {}
    modes = [name for name, chosen in found.items() if name.startswith("pooling_mode_") and chosen]
    modes += [found["pooling_mode"]] if "pooling_mode" in found else []
    pooling = _POOLING_OF_MODE.get(modes[0]) if len(modes) == 1 else None
    if pooling is None:
        raise InputError(
            f"pools by {' and '.join(map(str, modes)) or 'nothing'}; LaBSE pools by [CLS]",
            path=path / MODULES_FILE,
            remedy="use a model with LaBSE's pooling, or the mean of all tokens",
        )
    if "Dense" not in modules:
        raise InputError(
            "has no Dense module after the pooling, which is LaBSE's pooler",
            path=path / MODULES_FILE,
            remedy="use a model with LaBSE's pooling",
        )
    dense = _read(path / modules["Dense"] / MODULE_CONFIG_FILE)
    expected = ACTIVATION_OF_POOLER[pooling].rpartition(".")[2]
    if not str(dense.get("activation_function")).endswith(expected):
        raise InputError(
            f"has the activation {dense.get('activation_function')}; a pooler of {modes[0]} has "
            f"{expected}",
            path=path / modules["Dense"] / MODULE_CONFIG_FILE,
            remedy="use a model with LaBSE's pooling",
        )
    return Pooler(modules["Dense"], pooling)


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
