"""Files and folders of Beam jobs: on disk, or in a store that Beam reads, such as s3:// or gs://.

The command and the workers use the same functions. What a job writes appears under its name only
when it is complete: on disk and in HDFS by renaming, in object stores because an object appears
when its upload ends.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileSystem
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from labse_tf.errors import InputError, file_named
from labse_tf.files.local_paths import scheme_of
from labse_tf.files.storage import LOCAL

# Where an object appears only as a whole, and renaming would copy it.
_OBJECT_STORES = ("s3", "gs", "azfs")
# What has to be installed to read a scheme.
_EXTRAS = {"s3": "aws", "gs": "gcp", "hdfs": "hadoop"}
# What Beam says of an option that is missing.
_NOT_SET = re.compile(r"(\w+) is not set")
# What HDFS says of listing a file.
_NOT_A_FOLDER = "is not a directory"
# Names of files that are being written end so.
_UNFINISHED = re.compile(r"\.unfinished-[0-9a-f]{32}$")


def join(folder: str, *names: str) -> str:
    """Joins a folder, which may be a URL, and names."""
    if scheme_of(folder) is None:
        return os.path.join(folder, *names)
    return "/".join([folder.rstrip("/"), *names])


def absolute(path: str | os.PathLike[str]) -> str:
    """Returns the path as workers need it, who may have another working directory."""
    path = os.fspath(path)
    return path if scheme_of(path) else os.path.abspath(path)


class BeamStorage:
    """The disk, and all stores that Beam reads; see `labse_tf.files.storage.Storage`."""

    def __init__(self) -> None:
        # Stores tell size and time with the names, so that not every file has to be asked for.
        self._known: dict[str, list[int]] = {}

    def resolve(self, name: str | os.PathLike[str]) -> str:
        name = os.fspath(name)
        scheme = scheme_of(name)
        if scheme is None:
            return LOCAL.resolve(name)
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
            return LOCAL.exists(path)
        return bool(self._match(glob.escape(path))) or self.is_dir(path)

    def is_dir(self, path: str) -> bool:
        if scheme_of(path) is None:
            return LOCAL.is_dir(path)
        return bool(self.walk(path))

    def walk(self, folder: str) -> list[str]:
        if scheme_of(folder) is None:
            return LOCAL.walk(folder)
        if scheme_of(folder) in _OBJECT_STORES:
            return self._match(join(glob.escape(folder), "**"))
        return self._walk_folders(folder)

    def glob(self, pattern: str) -> list[str]:
        return LOCAL.glob(pattern) if scheme_of(pattern) is None else self._match(pattern)

    def size(self, path: str) -> int:
        return self.state(path)[0]

    def state(self, path: str) -> list[int]:
        """Returns the size of a file in bytes, and when it changed: in ns on disk, else in ms."""
        if scheme_of(path) is None:
            return [LOCAL.size(path), os.stat(path).st_mtime_ns]
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
        folder = pattern.rpartition("/")[0]
        if scheme_of(pattern) not in _OBJECT_STORES:
            if glob.has_magic(folder):
                fits = re.compile(FileSystem.translate_pattern(pattern)).match
                return list(filter(fits, self._walk_folders(re.split(r"/[^/]*[*?[]", folder)[0])))
            # HDFS does not list a folder that is missing.
            if not FileSystems.exists(folder):
                return []
        try:
            [found] = FileSystems.match([pattern])
        except BeamIOError as error:
            causes = filter(None, (error.exception_details or {}).values())
            raise InputError(
                f"the store does not answer: {next(causes, error)}",
                path=pattern,
                remedy="check its name, the credentials, and the Beam options for it after `--`",
            ) from error
        for one in found.metadata_list:
            changed = int(1000 * (one.last_updated_in_seconds or 0))
            self._known[one.path] = [one.size_in_bytes, changed]
        return sorted(one.path for one in found.metadata_list)


STORAGE = BeamStorage()


def configure(beam_options: Sequence[str]) -> None:
    """Gives this process the user's options for stores, such as `--s3_endpoint_url`."""
    FileSystems.set_options(PipelineOptions(list(beam_options)))


def open_file(path: str) -> BinaryIO:
    """Opens a file for reading, as it is: not decompressed."""
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


@contextlib.contextmanager
def create_file(path: str) -> Iterator[BinaryIO]:
    """Yields a stream for a new file, which appears under its name if the block succeeds.

    A worker whose work is repeated elsewhere may still write: then the last one wins, with the same
    content. `remove_unfinished` removes what it may leave behind.
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
            # Another worker may have made it meanwhile.
            if not FileSystems.exists(folder):
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
    """Writes a file as a whole."""
    with create_file(path) as stream:
        stream.write(content)


def read_json(path: str) -> dict[str, Any]:
    """Reads a JSON file."""
    with open_file(path) as stream:
        return json.loads(stream.read().decode("utf-8"))


def write_json(path: str, value: dict[str, Any]) -> None:
    """Writes a JSON file."""
    write_file(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8"))


def remove(path: str) -> None:
    """Removes a file, or a folder with all its files, if it exists."""
    files = STORAGE.walk(path) if scheme_of(path) in _OBJECT_STORES else []
    _delete(files or ([path] if FileSystems.exists(path) else []))


def remove_unfinished(folder: str) -> None:
    """Removes what workers that were killed left in a folder and below."""
    _delete([path for path in STORAGE.walk(folder) if _UNFINISHED.search(path)])


def _delete(paths: list[str]) -> None:
    """Removes files and folders. Beam would take those of the disk and of GCS as patterns."""
    for path in paths:
        if scheme_of(path) is None:
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    if stored := [path for path in paths if scheme_of(path)]:
        FileSystems.delete([glob.escape(one) if scheme_of(one) == "gs" else one for one in stored])
