"""Finds files on disk and in stores that TensorFlow opens, such as gs://.

TensorFlow is imported when a path in a store is named: commands that name none do without it.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from pathlib import Path

from labse_tf.errors import InputError
from labse_tf.files.local_paths import local_path, scheme_of
from labse_tf.files.outputs import whole_file

# Files that belong to the file beside them.
SIDE_FILES = (".calibration.json",)
# Size in bytes, and time of the last change in nanoseconds.
Stamp = tuple[int, int]


class Storage:
    """Finds files on disk and in all stores that `tf.io.gfile` reads; paths are sorted strings."""

    def resolve(self, name: str | os.PathLike[str]) -> str:
        """Returns the path that a user's name stands for; InputError for an unknown scheme."""
        name = os.fspath(name)
        if not scheme_of(name):
            return local_path(name)
        from tensorflow.errors import UnimplementedError

        try:
            gfile().exists(name)
        except UnimplementedError as error:
            remedy = "use gs://, install tensorflow-io for others, or copy the files to disk"
            problem = "TensorFlow cannot read this scheme"
            raise InputError(problem, path=name, remedy=remedy) from error
        return name

    def exists(self, path: str) -> bool:
        return gfile().exists(path) if scheme_of(path) else os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return gfile().isdir(path) if scheme_of(path) else os.path.isdir(path)

    def walk(self, folder: str) -> list[str]:
        """Returns all files in a folder and below it."""
        if scheme_of(folder):
            return _walk(folder)
        return sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())

    def glob(self, pattern: str) -> list[str]:
        """Returns the files and folders that match a pattern with *, ? or [...]."""
        return sorted((gfile().glob if scheme_of(pattern) else glob.glob)(pattern))

    def stamp(self, path: str) -> list[int]:
        """Returns the size of a file in bytes, and when it changed, in ns."""
        return list(stamp_of(path))

    def size(self, path: str) -> int:
        return self.stamp(path)[0]


STORAGE = Storage()


def gfile():
    from tensorflow.io import gfile

    return gfile


def failures() -> type[Exception]:
    """Returns the class of what a store that cannot be used raises."""
    from tensorflow.errors import OpError

    return OpError


@contextlib.contextmanager
def input_errors(url: str) -> Iterator[None]:
    """Turns the errors of a store that cannot be read inside the block into an InputError."""
    try:
        yield
    except failures() as error:
        problem = f"cannot be read ({error.message.splitlines()[0]})"
        remedy = "check the URL, the network and the credentials"
        raise InputError(problem, path=url, remedy=remedy) from error


def list_files(url: str) -> dict[str, Stamp]:
    """Returns the stamps of a folder's files, or of a file and its side files.

    Names are the part after `url`, such as "/checkpoints/checkpoint"; the name of a file is "".
    """
    files = _walk(url)
    if not gfile().isdir(url):
        files = [f"{url}{end}" for end in ("", *SIDE_FILES) if gfile().exists(f"{url}{end}")]
    return {file[len(url) :]: stamp_of(file) for file in files}


def _walk(url: str) -> list[str]:
    found = gfile().walk(url)
    return sorted(gfile().join(root, name) for root, _, names in found for name in names)


def stamp_of(path: str) -> Stamp:
    if not scheme_of(path):
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns
    status = gfile().stat(path)
    return status.length, status.mtime_nsec


def read(url: str) -> str | None:
    """Returns the content of a file in UTF-8, on disk or in a store; None if there is none."""
    if not STORAGE.exists(url):
        return None
    with gfile().GFile(url) as file:
        return file.read()


def write(url: str, text: str) -> None:
    _make_place(url)
    with gfile().GFile(url, "w") as file:
        file.write(text)


def send(path: Path, url: str) -> None:
    """Copies a file of this machine to a store."""
    _make_place(url)
    gfile().copy(str(path), url, overwrite=True)


def fetch(url: str, path: Path) -> None:
    """Copies a file of a store to this machine; it appears complete or not at all."""
    with whole_file(path, overwrite=True) as partial:
        gfile().copy(url, str(partial), overwrite=True)


def remove(url: str) -> None:
    """Removes a file or folder, if there is one."""
    if gfile().exists(url):
        (gfile().rmtree if gfile().isdir(url) else gfile().remove)(url)


def _make_place(url: str) -> None:
    # Object stores have no folders; TensorFlow's memory has, and adds to a file that is there.
    if scheme_of(url) == "ram":
        gfile().makedirs(url.rpartition("/")[0])
        remove(url)
