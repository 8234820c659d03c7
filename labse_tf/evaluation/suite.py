"""`labse eval all`: every task whose data are found below one folder, resumable."""

from __future__ import annotations

import glob
import inspect
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.record import encoder_facts, read_record
from labse_tf.evaluation.task import (
    Task,
    describe_figure,
    find_task,
    primary_figure,
    task_names,
)
from labse_tf.files.hashing import sha256_of_files
from labse_tf.files.outputs import locked, write_json

# The key of a result that tells what it was made from, beside the encoder.
_MADE_FROM = "made_from"
# Of an encoder's facts, those that embedding changes.
_COUNTED_BY_TEXT = ("zero_vectors", "texts_cut")
_COUNTED = ("dim", "normalisation", *_COUNTED_BY_TEXT)

_log = logging.getLogger("labse")


class Found(NamedTuple):
    """A task, its data, and the name of its result.

    That is the task's if the folder has the same name, else `<task>.<folder>`.
    """

    name: str
    task: Task
    data: Path


class SharedEncoder:
    """An encoder of several tasks: what it counts is not of one task alone, and unknown."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, as the encoder's."""
        return np.asarray(self._encoder.encode(texts), np.float32)

    def facts(self) -> dict[str, Any]:
        """Returns those of the encoder, without what it counts."""
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
    found = []
    for name in task_names():
        for folder in getattr(find_task(name), "FOLDERS", ()):
            if (Path(root) / folder).is_dir():
                label = name if folder == name else f"{name}.{folder}"
                found.append(Found(label, find_task(name), Path(root) / folder))
    if not found:
        raise InputError(
            "has no folder with the name of a task's data",
            path=root,
            remedy=f"such as {', '.join(sorted(_names()))}",
        )
    return found


def _names() -> Iterator[str]:
    for name in task_names():
        yield from getattr(find_task(name), "FOLDERS", ())


def evaluate_all(
    encoder: Encoder,
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    show: Callable[[str], None],
) -> list[str]:
    """Evaluates each task that has no result yet, and writes `out/<name>.json`.

    A result of other files or options is replaced.

    Args:
      encoder: any.
      root: the folder of the tasks' folders.
      out: a folder for the results; those that are there must be of the same encoder.
      show: called with each table, and with a summary at the end.

    Returns:
      A message for each task that failed; the others' results are written nonetheless.

    Raises:
      InputError: if there are no data, or `out` has a result of another encoder, or one that was
        not made here.
    """
    tasks = find_tasks(root)
    paths = {one.name: Path(out) / f"{one.name}.json" for one in tasks}
    shared, remembering = SharedEncoder(encoder), RememberingEncoder(encoder)
    origins = {one.name: _origin(one) for one in tasks}
    with locked(out):
        records = _done(paths, shared, origins)
        failures = []
        for number, (name, task, data) in enumerate(tasks, 1):
            if name in records:
                _log.info("%s has the result of %s already", paths[name], name)
                continue
            _log.info("task %d of %d: %s on %s", number, len(tasks), name, data)
            used = shared if getattr(task, "KEEPS_VECTORS", False) else remembering
            try:
                records[name] = task.evaluate(used, data) | {_MADE_FROM: origins[name]}
            except InputError as error:
                failures.append(f"{name}: {error}")
            except Exception as error:  # The other tasks should not be lost.
                failures.append(f"{name}: {type(error).__name__}: {error}")
            if name not in records:
                _log.error("%s", failures[-1])
                continue
            write_json(paths[name], records[name], overwrite=True)
            show(f"\n{name}\n{task.format_table(records[name])}")
    show(f"\n{summary(tasks, records)}")
    return failures


def _origin(one: Found) -> dict[str, Any]:
    """Returns hashes of the names and contents of all files in the task's folder, and its options.

    The files that a task leaves out are among them. Hidden ones are not: file managers write them.
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


def _done(
    paths: dict[str, Path], encoder: SharedEncoder, origins: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Returns the results that are there and are not outdated."""
    records = {}
    for name, path in paths.items():
        if not path.exists():
            continue
        record = read_record(path)
        _check_made_here(path, record, encoder)
        changed = [
            key for key, value in origins[name].items() if record[_MADE_FROM].get(key) != value
        ]
        if changed:
            _log.warning("%s is of other %s: %s anew", path, " and ".join(changed), name)
        else:
            records[name] = record
    return records


def _check_made_here(path: Path, record: dict[str, Any], encoder: SharedEncoder) -> None:
    """Rejects what should not be replaced."""
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


def _identity(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in _COUNTED}


def summary(tasks: Sequence[Found], records: dict[str, dict[str, Any]]) -> str:
    """Returns a line per result: 100 times its main figure, and what that is."""
    width = max(len(one.name) for one in tasks)
    lines = []
    for name, task, _ in tasks:
        if name in records:
            figure = 100 * primary_figure(task, records[name])
            lines.append(f"{name:{width}}{figure:8.2f}  {describe_figure(task)}")
        else:
            lines.append(f"{name:{width}}  failed")
    return "\n".join(lines)
