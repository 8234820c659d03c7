"""The interface of an evaluation task, its record, and running one task or all of a folder."""

from __future__ import annotations

import datetime
import glob
import importlib
import json
import logging
import math
import os
import pkgutil
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation import tasks
from labse_tf.evaluation.result import Column, Part, Result, format_table
from labse_tf.files.outputs import locked, sha256_of_files, write_json
from labse_tf.registry import find_object, is_object_name

# The keys of every record that readers of records need.
_NEEDED = {"task", "encoder", "data", "settings"}
# The key of a record of `evaluate_all` that holds the hash of the files in its folder.
_MADE_FROM = "made_from"
# Facts of an encoder that embedding changes.
_COUNTED_BY_TEXT = ("zero_vectors", "texts_cut")
_COUNTED = ("dim", "normalisation", *_COUNTED_BY_TEXT)

# Only loaded modules can have affected a result.
_MODULES = (
    *("labse_tf", "numpy", "scipy", "faiss", "tensorflow", "tensorflow_text", "torch"),
    *("transformers", "sentence_transformers"),
)

_log = logging.getLogger("labse")


class Option(NamedTuple):
    """An option of a task: `--max-candidates` for the keyword `max_candidates` of `evaluate`.

    `type` converts the given text to the value, which is at least `least`; the help names the
    keyword's default.
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
      TYPE: what MTEB and the Hugging Face Hub call such a task, for the model card.
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
        """Returns a record from `make_record`, of the files in the folder `data`.

        Raises:
          InputError: if the data are missing or broken.
        """


def task_names() -> list[str]:
    """Returns the names of the modules in `labse_tf.evaluation.tasks`, with hyphens."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(tasks.__path__))


def find_task(name: str) -> Task:
    """Returns the task of that name, or a user's own task, named `module:attribute`.

    Raises:
      InputError: if there is none, or it is not a task.
    """
    if name in task_names():
        return importlib.import_module(f"{tasks.__name__}.{name.replace('-', '_')}")
    if not is_object_name(name):
        remedy = f"choose from {', '.join(task_names())}, or name your own: module:attribute"
        raise InputError(f"there is no task '{name}'", remedy=remedy)
    task = find_object(name)
    needed = [*Task.__annotations__, "evaluate"]
    if missing := [wanted for wanted in needed if not hasattr(task, wanted)]:
        problem = f"is not a task: it has no {', '.join(missing)}"
        raise InputError(problem, path=name, remedy="see Task in labse_tf/evaluation/task.py")
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


def make_record(
    task: str,
    encoder: Encoder,
    data: str | os.PathLike[str],
    files: Iterable[str | os.PathLike[str]],
    settings: dict[str, Any],
    scores: dict[str, Any],
) -> dict[str, Any]:
    """Returns the record of a task; to be called after all texts have been encoded.

    `files` in the folder `data` were read; `settings` are the task's options, and `scores` its own
    keys, of which the first is the primary metric.
    """
    primary_metric = next(iter(scores))
    root = data if os.path.isdir(data) else os.path.dirname(data) or "."
    return {
        "task": task,
        "primary_metric": primary_metric,
        primary_metric: scores[primary_metric],
        "encoder": encoder_facts(encoder),
        "data": {"path": os.fspath(data), **facts_of_files(map(os.fspath, files), root)},
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
    remedy = "make it by `labse eval`"
    try:
        record = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read ({error})", path=path, remedy=remedy) from error
    if not isinstance(record, dict) or not record.keys() >= _NEEDED:
        raise InputError("is not a record of a task", path=path, remedy=remedy)
    return record


def encoder_facts(encoder: Encoder) -> dict[str, Any]:
    """Returns the encoder's `facts()`, or its class name if it has none."""
    facts = getattr(encoder, "facts", None)
    return facts() if callable(facts) else {"name": type(encoder).__name__}


def _loaded_versions() -> dict[str, str]:
    loaded = {name: sys.modules[name] for name in _MODULES if name in sys.modules}
    versions = {name: getattr(module, "__version__", "unknown") for name, module in loaded.items()}
    return {"python": platform.python_version()} | versions


class Found(NamedTuple):
    """A task, its data, and its record's name: `<task>`, or `<task>.<folder>` if they differ."""

    name: str
    task: Task
    data: Path


class SharedEncoder:
    """An encoder of several tasks, which embeds each distinct text once and keeps the vectors."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._vectors: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, as the encoder's."""
        unknown = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if unknown:
            vectors = np.asarray(self._encoder.encode(unknown), np.float32)
            self._vectors.update(zip(unknown, vectors, strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def facts(self) -> dict[str, Any]:
        return encoder_facts(self._encoder)


def find_tasks(root: str | os.PathLike[str]) -> list[Found]:
    """Returns the tasks that have data in a folder of `root` with one of their FOLDERS' names.

    Raises:
      InputError: if there is none.
    """
    known = [
        Found(name if folder == name else f"{name}.{folder}", task, Path(root) / folder)
        for name, task in ((name, find_task(name)) for name in task_names())
        for folder in getattr(task, "FOLDERS", ())
    ]
    found = [one for one in known if one.data.is_dir()]
    if not found:
        remedy = f"such as {', '.join(sorted({one.data.name for one in known}))}"
        raise InputError("has no folder with the name of a task's data", path=root, remedy=remedy)
    return found


def evaluate_all(
    encoder: Encoder,
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    show: Callable[[str], None],
) -> list[str]:
    """Evaluates each task that has no record yet, and writes `out/<name>.json`.

    A record of other files is replaced. Returns a message for each task that failed. `show` is
    called with each table, and with a summary at the end.

    Raises:
      InputError: if there are no data, or `out` has a record of another encoder, or one that was
        not made here.
    """
    found = find_tasks(root)
    shared = SharedEncoder(encoder)
    paths = {one.name: Path(out) / f"{one.name}.json" for one in found}
    origins = {one.name: {"files": _hash_files(one.data)} for one in found}
    failures, records = [], {}
    with locked(out):
        for name, path in paths.items():
            if path.exists() and (record := _read_done(path, encoder, origins[name])):
                records[name] = record
        for number, (name, task, data) in enumerate(found, 1):
            if name in records:
                _log.info("%s has the result of %s already", paths[name], name)
                continue
            _log.info("task %d of %d: %s on %s", number, len(found), name, data)
            used = encoder if getattr(task, "KEEPS_VECTORS", False) else shared
            try:
                record = task.evaluate(used, data) | {_MADE_FROM: origins[name]}
            except Exception as error:  # The other tasks should not be lost.
                kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
                failures.append(f"{name}: {kind}{error}")
                _log.error("%s", failures[-1])
                continue
            # They count the texts of all tasks.
            record["encoder"] |= dict.fromkeys(_COUNTED_BY_TEXT)
            records[name] = record
            write_json(paths[name], record, overwrite=True)
            show(f"\n{name}\n{format_table(describe(task, record))}")
    summary = ""
    for name, task, _ in found:
        summary += f"\n{name:{max(map(len, paths))}}"
        if name in records:
            figure = 100 * primary_figure(task, records[name])
            summary += f"{figure:8.2f}  {describe_figure(task)}"
        else:
            summary += "  failed"
    show(summary)
    return failures


def _hash_files(folder: Path) -> str:
    """Returns a hash of the names and contents of a folder's files, without hidden ones."""
    names = glob.glob("**", root_dir=folder, recursive=True)
    files = [path for name in names if (path := folder / name).is_file()]
    return sha256_of_files(files, root=folder)


def _read_done(path: Path, encoder: Encoder, origin: dict[str, str]) -> dict[str, Any] | None:
    """Returns a task's record, or None if it is of other files; rejects another encoder's."""
    record = read_record(path)
    ours, theirs = (
        {key: value for key, value in facts.items() if key not in _COUNTED}
        for facts in (encoder_facts(encoder), record["encoder"])
    )
    remedy = "delete it to evaluate the task again, or name another folder: --out"
    if ours != theirs:
        problem = f"is the result of another encoder, {theirs.get('name')}"
        raise InputError(problem, path=path, remedy=remedy)
    if _MADE_FROM not in record:
        raise InputError("does not tell what it was made from", path=path, remedy=remedy)
    if record[_MADE_FROM]["files"] == origin["files"]:
        return record
    _log.warning("%s is of other files: evaluated anew", path)
    return None
