"""Outputs appear complete or not at all: written under a temporary name, then moved into place."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labse_tf.errors import InputError
from labse_tf.files.local_paths import local_path

PARTIAL_SUFFIX = ".partial"
# The disk is full, the quota is used up, or a file exceeds the size limit.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_free(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Rejects an output path that exists, before any work is done.

    An empty folder counts as free.

    Raises:
      InputError: if the path exists and `overwrite` is False, its parent is not a folder, or the
        path is an unsupported URL.
    """
    path = Path(local_path(path))
    parent = path.parent
    if parent.exists() and not parent.is_dir():
        raise InputError("is a file, not a folder", path=parent, remedy="choose another output")
    if overwrite or not path.exists():
        return path
    if path.is_dir():
        if any(path.iterdir()):
            raise InputError(
                "the output folder is not empty",
                path=path,
                remedy="choose another one, or add --overwrite",
            )
        return path
    raise InputError(
        "the output exists already", path=path, remedy="choose another one, or add --overwrite"
    )


def check_free_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Same as `check_free` for a file: any folder is rejected, even with `overwrite`."""
    path = Path(local_path(path))
    if path.is_dir():
        raise InputError("is a folder", path=path, remedy="name a file to write to")
    return check_free(path, overwrite=overwrite)


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Yields a temporary path next to `path`; moves the file to `path` if the block succeeds."""
    path = check_free_file(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + PARTIAL_SUFFIX)
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(
    path: str | os.PathLike[str], value: dict[str, Any], *, overwrite: bool = False
) -> None:
    """Writes a record as a JSON file; NaN and infinities become null."""
    with whole_file(path, overwrite=overwrite) as partial:
        text = json.dumps(_finite(value), indent=1, ensure_ascii=False, allow_nan=False)
        partial.write_text(text + "\n", "utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextlib.contextmanager
def whole_dir(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Yields a new temporary folder next to `path`; moves it to `path` if the block succeeds.

    A temporary folder left behind by a killed process is removed first.
    """
    path = check_free(path, overwrite=overwrite)
    partial = path.with_name(path.name + PARTIAL_SUFFIX)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()
        os.replace(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Prevents a second process from working in the folder `path` at the same time.

    Raises:
      InputError: if another process holds the lock.
    """
    # The kernel releases the lock when the process ends, however it ends.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise InputError(
            "another process is using this folder", path=path, remedy="wait for it or stop it"
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def full_disk_said(path: str | os.PathLike[str], *, remedy: str) -> Iterator[None]:
    """Turns the error of a full disk inside the block into an InputError.

    Args:
      path: the file being written.
      remedy: what to do besides making room.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise InputError(
            f"cannot be written ({os.strerror(error.errno)})",
            path=path,
            remedy=f"make room; {remedy}",
        ) from error
