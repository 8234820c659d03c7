"""Finds the systems: the folders of `labse_tf/systems`, which the core never imports by name.

A system's `__init__.py` imports nothing heavy, and may define

  COMMANDS       words of a command -> `Command`
  NETWORKS       value of `encoder.network` -> its class
  PREPROCESSORS  value of "tokenizer" in a model.json -> the function that opens the preprocessor
  FILTERS        name of a filter of Beam jobs -> its class
  DESCRIPTIONS   kind of training -> the function of a run dir and the path of a checkpoint that
                 returns facts for model.json, or None for a run of another kind
  SECTIONS       section of the configuration -> the module that defines it
  TRANSLATORS    folder of checkpoints in a run dir -> the `Translator` that reads it

where a class or a function is written "module:attribute".
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


class Command(NamedTuple):
    """A command of `labse`.

    Attributes:
      module: has `EXAMPLES`, `add_arguments(parser)` and `run(args)`.
      summary: a line for the overview.
      is_beam_job: whether Beam's options may follow `--`.
    """

    module: str
    summary: str
    is_beam_job: bool = False


@functools.cache
def find_systems() -> tuple[ModuleType, ...]:
    """Returns the packages of all systems, sorted by name."""
    folder = Path(__file__).with_name("systems")
    names = sorted(found.name for found in pkgutil.iter_modules([str(folder)]))
    return tuple(importlib.import_module(f"labse_tf.systems.{name}") for name in names)


def registered(kind: str) -> Iterator[tuple[Any, Any]]:
    """Yields the items of the dict called `kind`, such as "NETWORKS", of all systems."""
    for system in find_systems():
        yield from getattr(system, kind, {}).items()


def find(kind: str, name: str) -> Any:
    """Returns the registered class or function, or None if no system has it."""
    place = dict(registered(kind)).get(name)
    if place is None:
        return None
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
