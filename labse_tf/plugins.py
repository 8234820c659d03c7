"""Finds what a user names as `module:attribute`: an encoder, a task, a filter of their own."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from labse_tf.errors import InputError


def find_object(name: str) -> Any:
    """Returns the object called `module:attribute`; modules are found from the current folder too.

    Raises:
      InputError: if there is no such module, or no such attribute in it.
    """
    module_name, _, attribute = name.partition(":")
    # Console scripts do not look for modules in the current folder, as `python -m` does.
    sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"cannot import {module_name} ({error})",
            path=name,
            remedy="run in the folder that holds it, or set PYTHONPATH",
        ) from error
    finally:
        sys.path.remove(os.getcwd())
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(
                f"there is no '{part}' in {getattr(found, '__name__', found)}",
                path=name,
                remedy="check its spelling",
            )
        found = getattr(found, part)
    return found
