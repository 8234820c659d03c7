"""The folder next to an output in which a long job keeps finished work."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labse_tf.errors import InputError
from labse_tf.files.hashing import stamps_of_files
from labse_tf.files.local_paths import local_path
from labse_tf.files.outputs import check_free_file, empty, locked, write_json

SUFFIX = ".work"
_SETTINGS = "settings.json"


def describe(path: Path) -> list[list]:
    """Returns path, size in bytes and mtime of a file, or of each file in a folder.

    Raises:
      InputError: if the path does not exist.
    """
    path = Path(local_path(path))
    if not path.exists():
        raise InputError("no such file", path=path, remedy="check the path")
    files = (file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return stamps_of_files(files)


def describe_model(name: str) -> list:
    """Returns a model's name, and its files if it is a folder."""
    name = local_path(name)
    return [name, describe(Path(name)) if Path(name).exists() else None]


@contextlib.contextmanager
def work_folder(out: Path, settings: dict[str, Any], *, overwrite: bool) -> Iterator[Path]:
    """Yields the folder `OUT.work`, new or from an interrupted run of the same job.

    It is removed if the block succeeds, or fails before any work was saved.

    Args:
      out: the output.
      settings: serialisable as JSON; saved work is reused only by a job with equal settings.
      overwrite: discard saved work of a job with other settings.

    Raises:
      InputError: if it belongs to a job with other settings, or another process works in it.
    """
    folder = out.with_name(out.name + SUFFIX)
    settings = json.loads(json.dumps(settings))
    with locked(folder):
        try:
            # Another process may have finished the same job meanwhile.
            check_free_file(out, overwrite=overwrite)
            _prepare(folder, settings, overwrite=overwrite)
            yield folder
        except BaseException:
            if not _has_work(folder):
                shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def _has_work(folder: Path) -> bool:
    # Records of work that is elsewhere are none.
    return any(file.stat().st_size for file in folder.iterdir() if file.suffix != ".json")


def _prepare(folder: Path, settings: dict[str, Any], *, overwrite: bool) -> None:
    file = folder / _SETTINGS
    before = json.loads(file.read_text("utf-8")) if file.is_file() else None
    if before is not None:
        # None and absent are the same: an option that is new and not given changes nothing.
        names = [name for name in settings | before if before.get(name) != settings.get(name)]
        if not names:
            return
        if not overwrite:
            raise InputError(
                f"holds the work of an interrupted job with other settings ({', '.join(names)})",
                path=folder,
                remedy="run that job again, remove the folder, or start afresh with --overwrite",
            )
    empty(folder)
    write_json(file, settings, overwrite=True)
