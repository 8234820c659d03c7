"""Arguments that are paths: on this machine, or in a store."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from labse_tf.errors import InputError
from labse_tf.files import staging
from labse_tf.files.local_paths import STORE_SCHEMES, TENSORFLOW_SCHEMES, local_path, scheme_of
from labse_tf.files.outputs import check_apart, is_within

OUTPUTS = ("json", "out", "plot", "report", "run_dir")
# Keys of the configuration that hold a path, and lists that hold none; others may.
_PATHS, _NO_PATHS = (".vocab_file", ".teacher"), ("languages", ".targets")


class StoreUrl(str):
    """An argument that names a file or folder in a store, until `stage` replaces it."""

    __slots__ = ()


def path_argument(text: str) -> str:
    """Converts an argument that has no `type` of its own: see `local_path`."""
    if scheme_of(text) in TENSORFLOW_SCHEMES:
        return StoreUrl(text)
    try:
        return local_path(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def store_argument(text: str) -> str:
    """Same as `path_argument` for Beam jobs, whose paths may be in a store."""
    if text.lower().startswith(tuple(f"{scheme}://" for scheme in STORE_SCHEMES)):
        return text
    return path_argument(text)


def check_outputs(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Raises InputError if an output would replace an input or another output."""
    names = [one.dest for one in parser._actions if not (one.type or one.choices)]
    given = [
        (name, one)
        for name in names
        for one in _list(getattr(args, name, None))
        if isinstance(one, str) and one != "-" and name != "task"
    ]
    outputs = {name: one for name, one in given if name in (*OUTPUTS, "counts", "work")}
    inputs = [one for name, one in given if name not in outputs]
    if outputs and hasattr(args, "config_kind"):
        inputs += _paths_in_config(args)
    for name, output in outputs.items():
        replaced = name in OUTPUTS and getattr(args, "overwrite", False)
        check_apart(output, inputs, overwrite=replaced)
        if name != "out" and "out" in outputs and is_within(output, outputs["out"]):
            raise InputError("is the same file as --out, or in it", path=output, remedy="move it")


def _paths_in_config(args: argparse.Namespace) -> list[str]:
    from labse_tf.cli.arguments import read_config
    from labse_tf.config import flatten

    try:
        config = read_config(args)
    except InputError:
        return []  # The command says what is wrong.
    found = []
    for key, value in flatten(dataclasses.asdict(config)):
        if key.endswith(_PATHS) or isinstance(value, list) and not key.endswith(_NO_PATHS):
            found += map(str, _list(value))
    # Some are written NAME=PATH.
    return [path for one in found for path in (one, one.partition("=")[2]) if path]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def stage(args: argparse.Namespace) -> None:
    """Replaces URLs of stores by paths: of copies of inputs, and of outputs to be published.

    Raises:
      InputError: if an input is not there, or TensorFlow cannot open the store.
    """
    overwrite = getattr(args, "overwrite", False)
    for name, value in vars(args).items():
        setattr(args, name, _staged(value, is_output=name in OUTPUTS, overwrite=overwrite))


def _staged(value: Any, *, is_output: bool, overwrite: bool) -> Any:
    if isinstance(value, list):
        return [_staged(one, is_output=is_output, overwrite=overwrite) for one in value]
    if not isinstance(value, StoreUrl):
        return value
    if is_output:
        return staging.output_path(value, overwrite=overwrite)
    return staging.input_path(value)
