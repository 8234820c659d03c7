"""Files and folders of Beam jobs: on disk, or in a store that Beam reads, such as s3:// or gs://.

The command and the workers use the same functions. What a job writes appears under its name only
when it is complete: on disk and in HDFS by renaming, in object stores because an object appears
when its upload ends.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from labse_tf.errors import InputError, file_named
from labse_tf.files.local_paths import scheme_of
from labse_tf.files.outputs import (
    check_free,
    check_free_file,
    emptied,
    not_free,
    whole_dir,
    whole_file,
)
from labse_tf.files.stores import Storage

# The file that a job writes last, and a folder inside its output while it runs.
REPORT, TEMPORARY = "report.json", "temporary"
# Stores where an object appears only as a whole, and renaming would copy it.
_OBJECT_STORES = ("s3", "gs", "azfs")
# Scheme -> the extra of apache-beam that reads it.
_EXTRAS = {"s3": "aws", "gs": "gcp", "hdfs": "hadoop"}
# Beam's message for an option that is missing, and HDFS's for listing a file.
_NOT_SET, _NOT_A_FOLDER = re.compile(r"(\w+) is not set"), "is not a directory"
# Names of files that are being written end so.
_UNFINISHED = re.compile(r"\.unfinished-[0-9a-f]{32}$")


def join(folder: str, *names: str) -> str:
    """Joins a folder, which may be a URL, and names."""
    return os.path.join(folder.rstrip("/") if scheme_of(folder) else folder, *names)


def absolute(path: str | os.PathLike[str]) -> str:
    """Returns the path as workers need it, who may have another working directory."""
    path = os.fspath(path)
    return path if scheme_of(path) else os.path.abspath(path)


class BeamStorage(Storage):
    """Finds files on disk and in all stores that Beam reads."""

    def __init__(self) -> None:
        # Stores tell size and time with the names, so that not every file has to be asked for.
        self._known: dict[str, list[int]] = {}

    def resolve(self, name: str | os.PathLike[str]) -> str:
        name = os.fspath(name)
        scheme = scheme_of(name)
        if scheme is None:
            return super().resolve(name)
        try:
            FileSystems.get_filesystem(name)
        except ValueError as error:
            extra = _EXTRAS.get(scheme)
            remedy = f"pip install 'labse_tf[{extra}]'" if extra else "use s3://, gs:// or hdfs://"
            if missing := _NOT_SET.match(str(error)):
                remedy = f"add --{missing[1]} after `--`"
            raise InputError(f"cannot read {scheme}://", path=name, remedy=remedy) from error
        return name

    def exists(self, path: str) -> bool:
        if scheme_of(path) is None:
            return super().exists(path)
        return bool(self._match(glob.escape(path))) or self.is_dir(path)

    def is_dir(self, path: str) -> bool:
        return super().is_dir(path) if scheme_of(path) is None else bool(self.walk(path))

    def walk(self, folder: str) -> list[str]:
        if scheme_of(folder) is None:
            return super().walk(folder)
        if scheme_of(folder) in _OBJECT_STORES:
            return self._match(join(glob.escape(folder), "**"))
        return self._walk_folders(folder)

    def glob(self, pattern: str) -> list[str]:
        return super().glob(pattern) if scheme_of(pattern) is None else self._match(pattern)

    def stamp(self, path: str) -> list[int]:
        """Returns the size of a file in bytes, and when it changed: in ns on disk, else in ms."""
        if scheme_of(path) is None:
            return super().stamp(path)
        if path not in self._known and not self._match(glob.escape(path)):
            raise FileNotFoundError(path)
        return self._known[path]

    def _walk_folders(self, folder: str) -> list[str]:
        """Walks HDFS, where a pattern matches in one folder and folders look like empty files."""
        found = []
        for path in self._match(join(folder, "*")):
            if self.size(path):
                found.append(path)
                continue
            try:
                found += self._walk_folders(path)
            except InputError as error:
                if _NOT_A_FOLDER not in error.problem:
                    raise
                found.append(path)
        return found

    def _match(self, pattern: str) -> list[str]:
        if scheme_of(pattern) not in _OBJECT_STORES:
            folder = pattern.rpartition("/")[0]
            if glob.has_magic(folder):
                fits = re.compile(FileSystem.translate_pattern(pattern)).match
                return list(filter(fits, self._walk_folders(re.split(r"/[^/]*[*?[]", folder)[0])))
            if not FileSystems.exists(folder):  # HDFS does not list a folder that is missing.
                return []
        try:
            [found] = FileSystems.match([pattern])
        except BeamIOError as error:
            causes = filter(None, (error.exception_details or {}).values())
            problem = f"the store does not answer: {next(causes, error)}"
            remedy = "check its name, the credentials, and the Beam options for it after `--`"
            raise InputError(problem, path=pattern, remedy=remedy) from error
        for one in found.metadata_list:
            changed = int(1000 * (one.last_updated_in_seconds or 0))
            self._known[one.path] = [one.size_in_bytes, changed]
        return sorted(one.path for one in found.metadata_list)


STORAGE = BeamStorage()


def configure(beam_options: Sequence[str]) -> None:
    """Sets the user's options for stores, such as `--s3_endpoint_url`, in this process."""
    FileSystems.set_options(PipelineOptions(list(beam_options)))


def open_file(path: str) -> BinaryIO:
    """Opens a file for reading, as it is: not decompressed."""
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


@contextlib.contextmanager
def create_file(path: str) -> Iterator[BinaryIO]:
    """Yields a stream for a new file, which appears under its name if the block succeeds.

    A worker whose work is repeated elsewhere may still write: then the last one wins, with the same
    content. `job_folder` removes what it may leave behind.
    """
    if scheme_of(path) in _OBJECT_STORES:
        # Closing the upload ends it, also after an error in the block.
        with tempfile.TemporaryFile() as content:
            yield content
            content.seek(0)
            with _create(path) as stream:
                shutil.copyfileobj(content, stream)
        return
    folder = path.rpartition("/")[0]
    if folder and not FileSystems.exists(folder):
        try:
            FileSystems.mkdirs(folder)
        except OSError:
            if not FileSystems.exists(folder):  # Else another worker has made it meanwhile.
                raise
    written = f"{path}.unfinished-{uuid.uuid4().hex}"
    with file_named(path), _create(written) as stream:
        yield stream
    if scheme_of(path) is None:
        os.replace(written, path)
        return
    # HDFS does not replace a file.
    if FileSystems.exists(path):
        FileSystems.delete([path])
    FileSystems.rename([written], [path])


def _create(path: str) -> BinaryIO:
    return FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)


def write_file(path: str, content: bytes) -> None:
    with create_file(path) as stream:
        stream.write(content)


def read_json(path: str) -> dict[str, Any]:
    with open_file(path) as stream:
        return json.loads(stream.read().decode("utf-8"))


def write_json(path: str, value: dict[str, Any]) -> None:
    write_file(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8"))


def remove(path: str) -> None:
    """Removes a file, or a folder with all its files, if it exists."""
    files = STORAGE.walk(path) if scheme_of(path) in _OBJECT_STORES else []
    _delete(files or ([path] if FileSystems.exists(path) else []))


def _delete(paths: list[str]) -> None:
    """Removes files and folders. Beam would take those of the disk and of GCS as patterns."""
    for path in paths:
        if scheme_of(path) is None:
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    if stored := [path for path in paths if scheme_of(path)]:
        FileSystems.delete([glob.escape(one) if scheme_of(one) == "gs" else one for one in stored])


def check_free_path(
    path: str | os.PathLike[str], *, overwrite: bool, is_folder: bool = False
) -> str:
    """Same as `check_free_file`, or `check_free` for a folder, for paths that may be in a store."""
    path = STORAGE.resolve(path)
    if scheme_of(path) is None:
        return str((check_free if is_folder else check_free_file)(path, overwrite=overwrite))
    path = path.rstrip("/") if is_folder else path
    if not overwrite and (STORAGE.walk(path) if is_folder else STORAGE.exists(path)):
        raise not_free(path, is_folder=is_folder)
    return path


@contextlib.contextmanager
def job_folder(path: str, marker: str, *, overwrite: bool) -> Iterator[str]:
    """Yields the folder that workers write to, whose content becomes that of `path` at the end.

    On disk it is another folder, which is moved. Stores cannot move a folder, so there it is `path`
    itself: its files are complete if the file `marker` is there, which the block must write last.
    An old marker is removed first, and all files if the block fails.
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
    except BaseException:
        remove(path)
        raise
    _tidy(path)


def _tidy(folder: str) -> None:
    remove(join(folder, TEMPORARY))
    # Workers that were killed left these.
    _delete([path for path in STORAGE.walk(folder) if _UNFINISHED.search(path)])


@contextlib.contextmanager
def parts_folder(path: str) -> Iterator[str]:
    """Yields a folder next to the file `path`, for its parts; it is removed at the end."""
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


def local_copy(path: str) -> str:
    """Returns a folder on this machine with the content of a model's folder.

    The files of a URL are copied to the folder for temporary files, where all processes of this
    machine find them; again, if they change in the store.
    """
    path = STORAGE.resolve(path)
    if scheme_of(path) is None:
        return path
    if not (files := STORAGE.walk(path)):
        raise InputError("no such folder", path=path, remedy="check the path")
    state = repr([(file, STORAGE.stamp(file)) for file in files])
    digest = hashlib.blake2b(state.encode("utf-8"), digest_size=16).hexdigest()
    copy = Path(tempfile.gettempdir(), f"labse-models-{os.getuid()}", digest)
    if copy.exists():
        return str(copy)
    copy.parent.mkdir(mode=0o700, exist_ok=True)
    partial = copy.with_name(f"{copy.name}.{uuid.uuid4().hex}")
    try:
        for file in files:
            target = partial / file.removeprefix(path.rstrip("/") + "/")
            # A name in a store may contain "..".
            if not target.resolve().is_relative_to(partial.resolve()):
                raise InputError("leads out of its folder", path=file, remedy="rename it")
            target.parent.mkdir(parents=True, exist_ok=True)
            with open_file(file) as stream, open(target, "wb") as local:
                shutil.copyfileobj(stream, local)
        os.rename(partial, copy)
    except OSError:
        if not copy.exists():  # Else another process was faster.
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return str(copy)
