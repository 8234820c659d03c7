"""The output folder of a job, on disk or in a store: complete, or not there."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from beam_pipelines.runtime.storage import (
    STORAGE,
    absolute,
    join,
    remove,
    remove_unfinished,
    scheme_of,
    write_file,
)
from labse_tf.errors import InputError
from labse_tf.files.outputs import check_free, check_free_file, emptied, whole_dir, whole_file

# The file that a job writes last, and a folder inside its output while it runs.
REPORT, TEMPORARY = "report.json", "temporary"


def check_free_folder(path: str | os.PathLike[str], *, overwrite: bool) -> str:
    """Returns the path of an output folder, before any work is done.

    Raises:
      InputError: if it exists, is not empty, and `overwrite` is False.
    """
    path = STORAGE.resolve(path)
    if scheme_of(path) is None:
        return str(check_free(path, overwrite=overwrite))
    path = path.rstrip("/")
    if not overwrite and STORAGE.walk(path):
        raise InputError(
            "the output folder is not empty",
            path=path,
            remedy="choose another one, or add --overwrite",
        )
    return path


def check_free_path(path: str | os.PathLike[str], *, overwrite: bool) -> str:
    """Same as `check_free_folder` for a file."""
    path = STORAGE.resolve(path)
    if scheme_of(path) is None:
        return str(check_free_file(path, overwrite=overwrite))
    if not overwrite and STORAGE.exists(path):
        raise InputError(
            "the output exists already", path=path, remedy="choose another one, or add --overwrite"
        )
    return path


@contextlib.contextmanager
def job_folder(path: str, marker: str, *, overwrite: bool) -> Iterator[str]:
    """Yields the folder that workers write to, whose content becomes that of `path` at the end.

    On disk it is another folder, which is moved. Stores cannot move a folder, so there it is `path`
    itself: what it holds is complete if the file `marker` is there, which the block must write
    last. An old marker is removed first, and all files if the block fails.

    Args:
      path: from `check_free_folder`.
      marker: a file name.
      overwrite: replace an existing folder.
    """
    if scheme_of(path) is None:
        with whole_dir(path, overwrite=overwrite) as folder:
            yield absolute(folder)
            _tidy(absolute(folder))
        return
    remove(join(path, marker))
    remove(path)
    try:
        yield path
        _tidy(path)
    except BaseException:
        remove(path)
        raise


@contextlib.contextmanager
def local_file(path: str, *, overwrite: bool) -> Iterator[Path]:
    """Yields a path on this machine for the content of the file `path`, which may be in a store."""
    if scheme_of(path) is None:
        with whole_file(path, overwrite=overwrite) as partial:
            yield partial
        return
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder, "file")
        yield local
        write_file(path, local.read_bytes())


@contextlib.contextmanager
def parts_folder(path: str) -> Iterator[str]:
    """Yields a folder beside the file `path`, for its parts; it is removed at the end."""
    folder = absolute(f"{path}.parts")
    if scheme_of(path) is None:
        with emptied(Path(folder)):
            yield folder
        return
    remove(folder)
    try:
        yield folder
    finally:
        remove(folder)


def _tidy(folder: str) -> None:
    remove(join(folder, TEMPORARY))
    remove_unfinished(folder)
