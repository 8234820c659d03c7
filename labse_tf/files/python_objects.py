"""Finds objects that a user names as `module:attribute`."""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any

from labse_tf.errors import InputError

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_object_name(name: str) -> bool:
    """Whether a name has the form `module:attribute`."""
    return _NAME.fullmatch(name) is not None


def find_object(name: str) -> Any:
    """Returns the object named `module:attribute`; also finds modules in the current folder.

    Raises:
      InputError: if the module cannot be imported or has no such attribute.
    """
    module_name, _, attribute = name.partition(":")
    # Console scripts do not search the current folder for modules, unlike `python -m`.
    sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"cannot import {module_name} ({error})",
            path=name,
            remedy="run in the folder that holds it, or set PYTHONPATH",
        ) from error
    except Exception as error:  # The user's code may raise anything.
        raise InputError(
            f"cannot import {module_name} ({type(error).__name__}: {error})",
            path=name,
            remedy="fix the module",
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
