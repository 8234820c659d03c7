"""Outputs appear complete or not at all: written under a temporary name, then moved into place.

A long job keeps its finished work next to its output, in a folder that the same job takes up again.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from labse_tf.errors import NO_SPACE, InputError
from labse_tf.files.local_paths import local_path, scheme_of

PARTIAL_SUFFIX, _WORK_SUFFIX = ".partial", ".work"
PLOT_FORMATS = ("png", "svg", "pdf")
# Outputs are made in such folders beside their places.
_BESIDE = (PARTIAL_SUFFIX, ".parts", _WORK_SUFFIX)
_NO_PART = (".html", ".json", ".pdf", ".png", ".svg")  # Figures may be replaced inside an input.
_SETTINGS = "settings.json"


def check_free(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Returns the path of an output, before any work is done. An empty folder counts as free.

    Raises InputError if it exists and `overwrite` is False, is a URL, or is in a file.
    """
    path = Path(local_path(path))
    parent = path.parent
    if parent.exists() and not parent.is_dir():
        raise InputError("is a file, not a folder", path=parent, remedy="choose another output")
    is_folder = path.is_dir()
    if overwrite or not path.exists() or (is_folder and not any(path.iterdir())):
        return path
    raise not_free(path, is_folder=is_folder)


def not_free(path: str | os.PathLike[str], *, is_folder: bool) -> InputError:
    """Returns the error for an output that exists."""
    problem = "the output folder is not empty" if is_folder else "the output exists already"
    return InputError(problem, path=path, remedy="choose another one, or add --overwrite")


def check_free_file(path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Same as `check_free` for a file: any folder is rejected, even with `overwrite`."""
    path = Path(local_path(path))
    if path.is_dir():
        raise InputError("is a folder", path=path, remedy="name a file to write to")
    return check_free(path, overwrite=overwrite)


def check_apart(output: str, inputs: Iterable[str], *, overwrite: bool = False) -> None:
    """Raises InputError if an output is an input or, to be replaced, around or a part of one.

    All are paths or URLs of stores; inputs may be globs. Inputs that do not exist are ignored.
    """
    is_model = os.path.isfile(os.path.join(output, "model.json"))
    is_part = overwrite and os.path.exists(output) and not (is_model or output.endswith(_NO_PART))
    for name in inputs:
        found = [name] if scheme_of(name) else [local_path(name)]
        if overwrite and os.path.isdir(found[0]):
            found += (str(path) for path in Path(found[0]).rglob("*") if path.is_symlink())
        elif not scheme_of(name) and not os.path.lexists(found[0]):
            found = glob.glob(found[0])
        for one in found:
            inside, around = is_within(output, one), is_within(one, output)
            beside = any(is_within(one, f"{output.rstrip('/')}{end}") for end in _BESIDE)
            if beside or around and (inside or overwrite) or inside and is_part:
                problem = f"would replace the input {one}, or a part of it"
                raise InputError(problem, path=output, remedy="name another output")


def is_within(path: str, folder: str) -> bool:
    """Returns whether a path leads, by any links, to a file or folder, or into it."""
    return _places(folder)[0] in _places(path)


def _places(path: str) -> list[Any]:
    """Returns what identifies a file or folder, and then each folder above it."""
    starts: list[Any] = [PurePosixPath(f"{scheme_of(path)}{path.partition(':')[2]}")]
    if not scheme_of(path):
        starts = [Path(find(local_path(path))) for find in (os.path.realpath, os.path.abspath)]
    # Device and inode are the same for all links, mounts and spellings.
    places = [place for start in starts for place in (start, *start.parents)]
    return [os.stat(one)[1:3] if os.path.exists(one) else str(one) for one in places]


@contextlib.contextmanager
def whole_file(
    path: str | os.PathLike[str], *, overwrite: bool = False, check=check_free_file
) -> Iterator[Path]:
    """Yields a temporary path near `path`; moves the file to `path` if the block succeeds.

    Raises InputError as `check`, before or after the block, or if another process writes the same.
    """
    path = check(path, overwrite=overwrite)
    if path.is_symlink() or path.name in ("", ".."):
        path = Path(os.path.realpath(path))
    with emptied(path.with_name(path.name + PARTIAL_SUFFIX)) as place:
        check(path, overwrite=overwrite)
        partial = place / path.name
        yield partial
        # An output that another program has made meanwhile stays.
        check(path, overwrite=overwrite)
        if partial.is_dir() and path.exists():
            os.replace(path, place / f"{path.name}.replaced")
        os.replace(partial, path)


@contextlib.contextmanager
def whole_dir(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Same as `whole_file` for a new folder; its parent is for other files of the block."""
    with whole_file(path, overwrite=overwrite, check=check_free) as partial:
        partial.mkdir()
        yield partial


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
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Makes the folder `path` if it is missing; raises InputError if another process works in it.

    The block may remove it. File systems without locks protect nothing.
    """
    folder = Path(path)
    if folder.is_file():
        raise InputError("is a file, not a folder", path=folder, remedy="choose another output")
    descriptor = _lock(folder)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    # Errors of a folder that another process removes now.
    with contextlib.suppress(FileExistsError, FileNotFoundError):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            # The kernel releases the lock when the process ends, however it ends.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            is_free = not isinstance(error, BlockingIOError)
        else:
            # The holder of the lock may have moved or removed the folder.
            is_free = os.path.samestat(os.fstat(descriptor), os.stat(folder))
        if is_free:
            return descriptor
        os.close(descriptor)
    problem = "another process is using this folder"
    raise InputError(problem, path=folder, remedy="wait for it or stop it")


@contextlib.contextmanager
def emptied(folder: Path) -> Iterator[Path]:
    """Yields `folder`, empty and locked as by `locked`, and removes it at the end."""
    if folder.is_file():
        folder.unlink()
    with locked(folder):
        try:
            empty(folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def empty(folder: Path) -> None:
    """Removes all that a folder holds; what its links lead to stays."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


@contextlib.contextmanager
def report_full_disk(path: str | os.PathLike[str], *, remedy: str) -> Iterator[None]:
    """Makes an InputError of a full disk while `path` is written; `remedy`: after making room."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        problem = f"cannot be written ({os.strerror(error.errno)})"
        raise InputError(problem, path=path, remedy=f"make room; {remedy}") from error


def plot_format(path: str | os.PathLike[str]) -> str:
    """Returns the format of a plot's file name; raises InputError for unknown ones."""
    extension = Path(path).suffix.removeprefix(".").lower()
    if extension not in PLOT_FORMATS:
        remedy = f"end the name in .{', .'.join(PLOT_FORMATS)}"
        raise InputError("unknown plot format", path=path, remedy=remedy)
    return extension


@contextlib.contextmanager
def work_folder(out: Path, settings: dict[str, Any], *, overwrite: bool) -> Iterator[Path]:
    """Yields the folder `OUT.work`, new or from an interrupted run of the same job.

    It is removed if the block succeeds, or fails before any work was saved. A job is the same if
    its settings are, which become JSON; `overwrite` discards the work of others.

    Raises InputError if it belongs to a job with other settings, or another process works in it.
    """
    folder = out.with_name(out.name + _WORK_SUFFIX)
    settings = json.loads(json.dumps(settings))
    with locked(folder):
        try:
            # Another process may have finished the same job meanwhile.
            check_free_file(out, overwrite=overwrite)
            _resume(folder, settings, overwrite=overwrite)
            yield folder
        except BaseException:
            files = (file for file in folder.iterdir() if file.suffix != ".json")
            # Records of work that is elsewhere are none.
            if not any(file.stat().st_size for file in files):
                shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def _resume(folder: Path, settings: dict[str, Any], *, overwrite: bool) -> None:
    """Empties a folder of finished work, unless it is of a job with the same settings."""
    file = folder / _SETTINGS
    if file.is_file():
        names = changed_settings(json.loads(file.read_text("utf-8")), settings)
        if not names:
            return
        if not overwrite:
            problem = "holds the work of an interrupted job with other settings"
            remedy = "run that job again, remove the folder, or start afresh with --overwrite"
            raise InputError(f"{problem} ({', '.join(names)})", path=folder, remedy=remedy)
    empty(folder)
    write_json(file, settings, overwrite=True)


def changed_settings(kept: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Returns the names whose values differ between an earlier job and this one; None is absent."""
    return [name for name in wanted | kept if kept.get(name) != wanted.get(name)]


def describe_files(path: Path) -> list[list]:
    """Returns path, size in bytes and mtime of a file, or of each file in a folder."""
    path = Path(local_path(path))
    if not path.exists():
        raise InputError("no such file", path=path, remedy="check the path")
    files = (file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return stamps_of_files(files)


def describe_model(name: str) -> list:
    """Returns a model's name, and its files if it is a folder."""
    name = local_path(name)
    return [name, describe_files(Path(name)) if Path(name).exists() else None]


def stamps_of_files(paths: Iterable[str | os.PathLike[str]]) -> list[list]:
    """Returns path, size in bytes and mtime of each file, sorted: faster than hashes."""
    status = {os.fspath(path): os.stat(path) for path in paths}
    return [[path, status[path].st_size, status[path].st_mtime_ns] for path in sorted(status)]


def sha256_of_files(
    paths: Iterable[str | os.PathLike[str]], *, root: str | os.PathLike[str]
) -> str:
    """Returns one SHA-256 over the names of files, relative to `root`, and their contents.

    It depends neither on the order of `paths` nor on the location of `root`, nor on the location of
    files outside of it.
    """
    digest, named = hashlib.sha256(), [(os.path.relpath(path, root), path) for path in paths]
    named = [(os.path.basename(path) if n.startswith(os.pardir) else n, path) for n, path in named]
    for name, path in sorted(named):
        with open(path, "rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{Path(name).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
