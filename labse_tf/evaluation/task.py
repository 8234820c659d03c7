"""What an evaluation task is, and how it is found by its name."""

from __future__ import annotations

import importlib
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
      name: of the keyword.
      help: what it does, with its default, which is that of the keyword.
      type: makes the value of the text that was given.
      metavar: shown in the help for the value.
      choices: the only values, if there are not many.
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

    It may also have `draw(result, figure)`, which draws on a matplotlib Figure (for --plot), and
    LOWER_IS_BETTER = True.

    Attributes:
      DATA: the lines of `labse eval --help` that say what --data holds and what is measured.
      OPTIONS: the keyword arguments of `evaluate`, which have defaults.
      PRIMARY_METRIC: the key of the result that sums it up.
    """

    DATA: str
    OPTIONS: tuple[Option, ...]
    PRIMARY_METRIC: str

    def evaluate(
        self, encoder: Encoder, data: str | os.PathLike[str], **options: Any
    ) -> dict[str, Any]:
        """Scores any encoder; returns what `record.make_record` makes."""

    def format_table(self, result: dict[str, Any]) -> str:
        """Returns what is printed."""


_NEEDED = ("DATA", "OPTIONS", "PRIMARY_METRIC", "evaluate", "format_table")


def task_names() -> list[str]:
    """Returns the names of the modules in `labse_tf.evaluation.tasks`, with hyphens."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(tasks.__path__))


def find_task(name: str) -> Task:
    """Returns the task of that name, or a user's own, named `module:attribute`.

    Raises:
      InputError: if there is none, or what is there is no task.
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
            f"is no task: it has no {', '.join(missing)}",
            path=name,
            remedy="see Task in labse_tf/evaluation/task.py",
        )
    return task


def primary_figure(task: Task, result: dict[str, Any]) -> float:
    """Returns the one number that sums a result up: that of PRIMARY_METRIC, or of `figure`."""
    figure = getattr(task, "figure", None)
    return float(figure(result) if figure else result[task.PRIMARY_METRIC])
