"""The interface of an evaluation task, its record, and finding tasks by name."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import json
import math
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation import tasks
from labse_tf.evaluation.result import Column, Part, Result
from labse_tf.files.outputs import sha256_of_files
from labse_tf.registry import find_object, is_object_name


class Option(NamedTuple):
    """An option of a task: `--max-candidates` for the keyword `max_candidates` of `evaluate`.

    Attributes:
      name: the name of the keyword.
      help: what it does, with its default, which is that of the keyword.
      type: converts the given text to the value.
      metavar: placeholder for the value in the help.
      choices: the allowed values, if they are few.
      least: the smallest allowed number.
    """

    name: str
    help: str
    type: Callable[[str], Any] | None = None
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    least: int | None = None

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def check(self, value: Any) -> None:
        """Raises InputError if the value is not allowed."""
        if self.choices and value not in self.choices:
            remedy = f"choose from {', '.join(self.choices)}"
            raise InputError(f"{self.flag} is {value}", remedy=remedy)
        if self.least is not None and value < self.least:
            raise InputError(f"{self.flag} is {value}", remedy=f"give {self.least} or more")


class Task(Protocol):
    """A module, or any object, with these names.

    It may also have

      describe(record): returns the `Result` from which the table, the plot and the comparison are
        made; without it they have the main figure alone.
      LOWER_IS_BETTER: True for an error.
      UNITS_ARE_LANGUAGES: True if the names of the result's units are codes of languages.
      FOLDERS: names of folders that `labse eval all` takes for its data.
      KEEPS_VECTORS: True if it keeps vectors itself, on disk; `labse eval all` keeps those of other
        tasks in memory.

    Attributes:
      DATA: the lines of the help that describe --data and what is measured.
      OPTIONS: the keyword arguments of `evaluate`, which have defaults.
      PRIMARY_METRIC: the key of the main figure in the record: a number; or one for each system,
        where `model` counts; or one for each direction, whose mean counts.
    """

    DATA: str
    OPTIONS: tuple[Option, ...]
    PRIMARY_METRIC: str

    def evaluate(
        self, encoder: Encoder, data: str | os.PathLike[str], **options: Any
    ) -> dict[str, Any]:
        """Evaluates an encoder.

        Args:
          encoder: any.
          data: a folder of files.
          **options: as OPTIONS describes them.

        Returns:
          A record from `make_record`.

        Raises:
          InputError: if the data are missing or broken.
        """


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
    needed = [*Task.__annotations__, "evaluate"]
    if missing := [wanted for wanted in needed if not hasattr(task, wanted)]:
        raise InputError(
            f"is not a task: it has no {', '.join(missing)}",
            path=name,
            remedy="see Task in labse_tf/evaluation/task.py",
        )
    return task


def primary_figure(task: Task, record: Mapping[str, Any]) -> float:
    """Returns the main figure of a record."""
    found = record[task.PRIMARY_METRIC]
    if isinstance(found, Mapping):
        found = found["model"]
    if isinstance(found, Mapping):
        return sum(found.values()) / len(found)
    # JSON has null for NaN.
    return math.nan if found is None else float(found)


def describe_figure(task: Task) -> str:
    """Returns the name of the main figure, and which way is better."""
    better = "lower" if getattr(task, "LOWER_IS_BETTER", False) else "higher"
    return f"{task.PRIMARY_METRIC}, {better} is better"


def describe(task: Task, record: Mapping[str, Any]) -> Result:
    """Returns the task's description of a record, or one of the main figure alone."""
    if hasattr(task, "describe"):
        return task.describe(record)
    name = task.PRIMARY_METRIC
    rows = {record["task"]: {name: primary_figure(task, record)}}
    return Result([Part("", rows, [Column(name, name, 2, style="bar")])])


# The keys of every record that readers of records need.
_NEEDED = {"task", "encoder", "data", "settings"}

# Module -> the package with its version. Only loaded modules can have affected the result.
_PACKAGES = {
    **{name: name for name in ("labse_tf", "numpy", "scipy", "tensorflow", "torch")},
    "faiss": "faiss-cpu",
    "tensorflow_text": "tensorflow-text",
    "transformers": "transformers",
    "sentence_transformers": "sentence-transformers",
}


def make_record(
    task: str,
    encoder: Encoder,
    data: str | os.PathLike[str],
    files: Iterable[str | os.PathLike[str]],
    directions: Sequence[str],
    settings: dict[str, Any],
    scores: dict[str, Any],
) -> dict[str, Any]:
    """Returns the record of a task; to be called after all texts have been encoded.

    Args:
      task: the name of the task.
      encoder: if it has `facts()`, as encoders from `open_encoder` have, they are recorded.
      data: the folder that the user gave.
      files: the files in it that were read.
      directions: search directions, such as "xx -> en".
      settings: the task's options.
      scores: the task's own keys; the first is the primary metric.
    """
    primary_metric = next(iter(scores))
    files = [os.fspath(file) for file in files]
    root = data if os.path.isdir(data) else os.path.dirname(data) or "."
    return {
        "task": task,
        "primary_metric": primary_metric,
        primary_metric: scores[primary_metric],
        "encoder": encoder_facts(encoder),
        "data": {"path": os.fspath(data), **facts_of_files(files, root)},
        "directions": list(directions),
        "settings": settings,
        "versions": _loaded_versions(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        **scores,
    }


def facts_of_files(files: Iterable[str], root: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the number of files, and a hash of their names below `root` and contents."""
    files = list(files)
    return {"files": len(files), "sha256": sha256_of_files(files, root=root)}


def read_record(path: Path) -> dict[str, Any]:
    """Reads a record that was written as JSON.

    Raises:
      InputError: if it cannot be read, or is not a record.
    """
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be read as a record ({error})", path=path, remedy="make it by `labse eval`"
        ) from error
    if not isinstance(record, dict) or not record.keys() >= _NEEDED:
        raise InputError("is not a record of a task", path=path, remedy="make it by `labse eval`")
    return record


def encoder_facts(encoder: Encoder) -> dict[str, Any]:
    """Returns the encoder's `facts()`, or its class name if it has none."""
    facts = getattr(encoder, "facts", None)
    return facts() if callable(facts) else {"name": type(encoder).__name__}


def _loaded_versions() -> dict[str, str]:
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for module, package in _PACKAGES.items():
        if module in sys.modules:
            try:
                versions[module] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                versions[module] = str(getattr(sys.modules[module], "__version__", "unknown"))
    return versions
