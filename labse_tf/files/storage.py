"""Where input files are: on this machine, or in a store that a part of the project can read.

`LOCAL` is the disk. Beam jobs and training have storages of their own, which read stores too:
`beam_pipelines.runtime.storage` and `labse_tf.data.storage`. What finds files takes any of them.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Protocol

from labse_tf.files.staging import input_path


class Storage(Protocol):
    """How files are found. Paths are strings; those that it returns are sorted."""

    def resolve(self, name: str | os.PathLike[str]) -> str:
        """Returns the path that a user's name stands for.

        Raises:
          InputError: for a URL with a scheme that it cannot read.
        """
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        ...

    def is_dir(self, path: str) -> bool:
        """Whether there is a folder."""
        ...

    def walk(self, folder: str) -> list[str]:
        """Returns all files in a folder and in those below it."""
        ...

    def glob(self, pattern: str) -> list[str]:
        """Returns the files and folders that match a pattern with *, ? or [...]."""
        ...

    def size(self, path: str) -> int:
        """Returns the size of a file in bytes."""
        ...


class LocalStorage:
    """The disk of this machine, and copies on it of what is in stores; see `Storage`."""

    def resolve(self, name: str | os.PathLike[str]) -> str:
        return input_path(name)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def walk(self, folder: str) -> list[str]:
        return sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())

    def glob(self, pattern: str) -> list[str]:
        return sorted(glob.glob(pattern))

    def size(self, path: str) -> int:
        return os.path.getsize(path)


LOCAL = LocalStorage()
