"""Arguments that are paths: on this machine, or in a store."""

from __future__ import annotations

import argparse
from typing import Any

from labse_tf.errors import InputError
from labse_tf.files import staging
from labse_tf.files.local_paths import local_path
from labse_tf.files.storage import STORE_SCHEMES, TENSORFLOW_SCHEMES, scheme_of

OUTPUTS = ("json", "out", "plot", "report", "run_dir")


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
