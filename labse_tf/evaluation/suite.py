"""`labse eval all`: every task whose data are found below one folder, resumable."""

from __future__ import annotations

import glob
import inspect
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.result import format_table
from labse_tf.evaluation.task import (
    Task,
    describe,
    describe_figure,
    encoder_facts,
    find_task,
    primary_figure,
    read_record,
    task_names,
)
from labse_tf.files.outputs import locked, sha256_of_files, write_json

# The key of a record that holds what it was made from, next to the encoder.
_MADE_FROM = "made_from"
# Facts of an encoder that embedding changes.
_COUNTED_BY_TEXT = ("zero_vectors", "texts_cut")
_COUNTED = ("dim", "normalisation", *_COUNTED_BY_TEXT)

_log = logging.getLogger("labse")


class Found(NamedTuple):
    """A task, its data, and the name of its record.

    The name is the task's if the folder has the same name, else `<task>.<folder>`.
    """

    name: str
    task: Task
    data: Path


class SharedEncoder:
    """An encoder of several tasks: counts of texts are of all tasks, so they are left out."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, as the encoder's."""
        return np.asarray(self._encoder.encode(texts), np.float32)

    def facts(self) -> dict[str, Any]:
        """Returns the encoder's facts, with None for its counts of texts."""
        return encoder_facts(self._encoder) | dict.fromkeys(_COUNTED_BY_TEXT)


class RememberingEncoder(SharedEncoder):
    """Embeds each distinct text once, for all tasks; the vectors stay in memory."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._vectors: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, as the encoder's."""
        unknown = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if unknown:
            self._vectors.update(zip(unknown, super().encode(unknown), strict=True))
        return np.stack([self._vectors[text] for text in texts])


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
        raise InputError(
            "has no folder with the name of a task's data",
            path=root,
            remedy=f"such as {', '.join(sorted({one.data.name for one in known}))}",
        )
    return found


def evaluate_all(
    encoder: Encoder,
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    show: Callable[[str], None],
) -> list[str]:
    """Evaluates each task that has no record yet, and writes `out/<name>.json`.

    A record of other files or options is replaced.

    Args:
      encoder: any.
      root: the folder of the tasks' folders.
      out: a folder for the records; existing ones must be of the same encoder.
      show: called with each table, and with a summary at the end.

    Returns:
      A message for each task that failed; the others' records are written nonetheless.

    Raises:
      InputError: if there are no data, or `out` has a record of another encoder, or one that was
        not made here.
    """
    tasks = find_tasks(root)
    shared, remembering = SharedEncoder(encoder), RememberingEncoder(encoder)
    paths = {one.name: Path(out) / f"{one.name}.json" for one in tasks}
    origins = {one.name: _origin(one) for one in tasks}
    failures, records = [], {}
    with locked(out):
        for name, path in paths.items():
            if path.exists() and (record := _read(name, path, shared, origins[name])):
                records[name] = record
        for number, (name, task, data) in enumerate(tasks, 1):
            if name in records:
                _log.info("%s has the result of %s already", paths[name], name)
                continue
            _log.info("task %d of %d: %s on %s", number, len(tasks), name, data)
            used = shared if getattr(task, "KEEPS_VECTORS", False) else remembering
            try:
                record = task.evaluate(used, data) | {_MADE_FROM: origins[name]}
            except Exception as error:  # The other tasks should not be lost.
                kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
                failures.append(f"{name}: {kind}{error}")
                _log.error("%s", failures[-1])
                continue
            records[name] = record
            write_json(paths[name], record, overwrite=True)
            show(f"\n{name}\n{format_table(describe(task, record))}")
    show(f"\n{_summary(tasks, records)}")
    return failures


def _origin(one: Found) -> dict[str, Any]:
    """Returns a hash of the names and contents of all files in the task's folder, and its options.

    The hash includes files that the task leaves out, but not hidden ones: file managers write them.
    """
    names = glob.glob("**", root_dir=one.data, recursive=True)
    files = [path for name in names if (path := one.data / name).is_file()]
    options = inspect.signature(one.task.evaluate).parameters.values()
    return {
        "files": sha256_of_files(files, root=one.data),
        "options": {
            option.name: option.default for option in options if option.kind is option.KEYWORD_ONLY
        },
    }


def _read(
    name: str, path: Path, encoder: SharedEncoder, origin: dict[str, Any]
) -> dict[str, Any] | None:
    """Returns the record of a task, or None if it is outdated; rejects what may not be replaced."""
    record = read_record(path)
    if _identity(record["encoder"]) != _identity(encoder.facts()):
        raise InputError(
            f"is the result of another encoder, {record['encoder'].get('name')}",
            path=path,
            remedy="name another folder: --out",
        )
    if _MADE_FROM not in record:
        raise InputError(
            "does not tell what it was made from",
            path=path,
            remedy="delete it to evaluate the task again, or name another folder: --out",
        )
    changed = [key for key, value in origin.items() if record[_MADE_FROM].get(key) != value]
    if changed:
        _log.warning("%s is of other %s: %s anew", path, " and ".join(changed), name)
    return None if changed else record


def _identity(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in _COUNTED}


def _summary(tasks: Sequence[Found], records: dict[str, dict[str, Any]]) -> str:
    """Returns a line per record: 100 times its main figure, and its name."""
    width = max(len(one.name) for one in tasks)
    lines = []
    for name, task, _ in tasks:
        figure = f"{100 * primary_figure(task, records[name]):8.2f}" if name in records else ""
        lines.append(f"{name:{width}}{figure}  {describe_figure(task) if figure else 'failed'}")
    return "\n".join(lines)
