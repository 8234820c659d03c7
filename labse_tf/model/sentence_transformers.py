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


# Our `encoder.pooling` -> its name there.
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
    """The folder of the Dense module, None if there is none, and its `encoder.pooling`."""

    folder: str | None
    pooling: str


def find_pooler(path: Path) -> Pooler | None:
    """Returns the pooler, None if not a sentence-transformers directory.

    Raises:
      InputError: if the directory computes anything but [CLS] or the mean of the tokens, LaBSE's
        Dense module (after a mean it may be missing) and the norm.
    """
    if not (path / MODULES_FILE).is_file():
        return None
    modules = _read_modules(path)
    # Dropout does nothing when a text is embedded.
    kinds = [kind for kind, _ in modules if kind != "Dropout"]
    folders = dict(modules)
    if kinds[:2] != ["Transformer", "Pooling"] or folders["Transformer"]:
        raise _refusal(path / MODULES_FILE, "does not begin with a Transformer and a Pooling")
    rest = kinds[2:]
    while rest and rest[-1] == "Normalize":
        rest.pop()
    if unknown := next((kind for place, kind in enumerate(rest) if place or kind != "Dense"), None):
        raise _refusal(path / MODULES_FILE, f"has the module {unknown} at an unknown place")
    pooling = _read_pooling(path / folders["Pooling"] / MODULE_CONFIG_FILE)
    _check_use(path / "config_sentence_transformers.json", unit="Normalize" in kinds)
    if not rest and pooling == "cls":
        raise _refusal(path / MODULES_FILE, "has no Dense module after [CLS], LaBSE's pooler")
    if rest:
        _check_dense(path / folders["Dense"] / MODULE_CONFIG_FILE, pooling)
    return Pooler(folders.get("Dense"), pooling)


def _refusal(file: Path, problem: str, remedy: str = "use a model with LaBSE's modules, or a mean"):
    return InputError(problem, path=file, remedy=remedy)


def _read_pooling(file: Path) -> str:
    found = _read(file)
    modes = [name for name, chosen in found.items() if name.startswith("pooling_mode_") and chosen]
    modes += [found["pooling_mode"]] if "pooling_mode" in found else []
    pooling = _POOLING_OF_MODE.get(str(modes[0])) if len(modes) == 1 else None
    if pooling is None:
        said = " and ".join(map(str, modes)) or "nothing"
        raise _refusal(file, f"pools by {said}; LaBSE pools by [CLS]")
    return pooling


def _check_dense(file: Path, pooling: str) -> None:
    dense = _read(file)
    activation = str(dense.get("activation_function"))
    expected = ACTIVATION_OF_POOLER[pooling].rpartition(".")[2]
    if activation.rpartition(".")[2] != expected:
        raise _refusal(
            file, f"has the activation {activation}; a pooler of {pooling} has {expected}"
        )
    if dense.get("in_features") != dense.get("out_features"):
        sizes = f"from {dense.get('in_features')} to {dense.get('out_features')} numbers"
        raise _refusal(file, f"leads {sizes}; LaBSE's pooler keeps the width")
    for name in ("module_input_name", "module_output_name"):
        if (value := dense.get(name, "sentence_embedding")) != "sentence_embedding":
            raise _refusal(file, f"has the {name} {value}")


def _check_use(file: Path, *, unit: bool) -> None:
    """Refuses what changes texts before, or vectors after the modules."""
    found = _read(file) if file.is_file() else {}
    prompts = found.get("prompts") or {}
    if given := [name for name, text in prompts.items() if text]:
        remedy = "put it before your texts yourself, and remove it there"
        raise _refusal(file, f"puts the prompt {given[0]} before texts", remedy)
    if found.get("truncate_dim") is not None:
        said = f"cuts vectors to {found['truncate_dim']} dimensions (truncate_dim)"
        raise _refusal(file, said, "remove it there, and give --dim when you embed")
    if not unit and (name := found.get("similarity_fn_name")) not in (None, "cosine"):
        remedy = "use a model with a Normalize module, or with the cosine"
        raise _refusal(file, f"compares by {name}; vectors here have unit length", remedy)


def read_length(path: Path) -> int | None:
    """Returns the number of tokens that texts are cut to there; None if not said."""
    files = {
        "sentence_bert_config.json": "max_seq_length",
        "tokenizer_config.json": "model_max_length",
    }
    for name, key in files.items():
        length = _read(path / name).get(key) if (path / name).is_file() else None
        if isinstance(length, int) and length > 2:
            return length
    return None


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
