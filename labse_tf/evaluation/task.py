"""The interface of an evaluation task, and finding tasks by name."""

from __future__ import annotations

import importlib
import math
import os
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation import tasks
from labse_tf.files.python_objects import find_object, is_object_name


class Option(NamedTuple):
    """An option of a task: `--max-candidates` for the keyword `max_candidates` of `evaluate`.

    Attributes:
      name: the name of the keyword.
      help: what it does, with its default, which is that of the keyword.
      type: converts the given text to the value.
      metavar: placeholder for the value in the help.
      choices: the allowed values, if they are few.
    """

    name: str
    help: str
    type: Callable[[str], Any] | None = None
    metavar: str | None = None
    choices: tuple[str, ...] | None = None

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


class Task(Protocol):
    """A module, or any object, with these names.

    It may also have

      draw(result, figure): draws on a matplotlib Figure, for --plot.
      LOWER_IS_BETTER: True for an error.
      FOLDERS: names of folders that `labse eval all` takes for its data.
      KEEPS_VECTORS: True if it keeps vectors itself, on disk; `labse eval all` keeps those of other
        tasks in memory.
      units(result): the figures, by language or part, whose mean is the main figure, for
        `labse eval compare`.
      UNITS_ARE_LANGUAGES: True if their names are codes of languages.

    Attributes:
      DATA: the lines of `labse eval --help` that describe --data and what is measured.
      OPTIONS: the keyword arguments of `evaluate`, which have defaults.
      PRIMARY_METRIC: the key of the main figure in the result.
    """

    DATA: str
    OPTIONS: tuple[Option, ...]
    PRIMARY_METRIC: str

    def evaluate(
        self, encoder: Encoder, data: str | os.PathLike[str], **options: Any
    ) -> dict[str, Any]:
        """Evaluates any encoder and returns a record from `record.make_record`."""

    def format_table(self, result: dict[str, Any]) -> str:
        """Returns the table to print."""


_NEEDED = ("DATA", "OPTIONS", "PRIMARY_METRIC", "evaluate", "format_table")


def task_names() -> list[str]:
    """Returns the names of the modules in `labse_tf.evaluation.tasks`, with hyphens."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(tasks.__path__))


def find_task(name: str) -> Task:
    """Returns the task of that name, or a user's own task, named `module:attribute`.

    Raises:
      InputError: if there is none, or the object is not a task.
    """
    if name in task_names():
        return importlib.import_module(f"{tasks.__name__}.{name.replace('-', '_')}")
    if not is_object_name(name):
        raise InputError(
            f"there is no task '{name}'",
            remedy=f"choose from {', '.join(task_names())}, or name your own: module:attribute",
        )
    task = find_object(name)
    if missing := [wanted for wanted in _NEEDED if not hasattr(task, wanted)]:
        raise InputError(
            f"is not a task: it has no {', '.join(missing)}",
            path=name,
            remedy="see Task in labse_tf/evaluation/task.py",
        )
    return task


def primary_figure(task: Task, result: dict[str, Any]) -> float:
    """Returns the main figure of a result: from the task's `figure`, or its PRIMARY_METRIC."""
    figure = getattr(task, "figure", None)
    found = figure(result) if figure else result[task.PRIMARY_METRIC]
    # JSON has null for NaN.
    return math.nan if found is None else float(found)


def describe_figure(task: Task) -> str:
    """Returns the name of the main figure, and which way is better."""
    better = "lower" if getattr(task, "LOWER_IS_BETTER", False) else "higher"
    return f"{task.PRIMARY_METRIC}, {better} is better"
