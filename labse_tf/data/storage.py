"""The corpora of training: on disk, or in a store that TensorFlow reads, such as gs://.

TensorFlow is imported only for stores: commands that find no corpora there do without it.
"""

from __future__ import annotations

import os

from labse_tf.files import stores
from labse_tf.files.local_paths import scheme_of
from labse_tf.files.storage import LOCAL
from labse_tf.files.stores import gfile


def is_stored(path: str) -> bool:
    """Whether a path is a URL of a store; file:// is none."""
    return scheme_of(path) is not None


class TensorFlowStorage:
    """The disk, and all stores that `tf.io.gfile` reads; see `labse_tf.files.storage.Storage`."""

    def resolve(self, name: str | os.PathLike[str]) -> str:
        name = os.fspath(name)
        if not is_stored(name):
            return LOCAL.resolve(name)
        stores.require_supported(name)
        return name

    def exists(self, path: str) -> bool:
        return stores.exists(path) if is_stored(path) else LOCAL.exists(path)

    def is_dir(self, path: str) -> bool:
        return gfile().isdir(path) if is_stored(path) else LOCAL.is_dir(path)

    def walk(self, folder: str) -> list[str]:
        if not is_stored(folder):
            return LOCAL.walk(folder)
        found = gfile().walk(folder)
        return sorted(gfile().join(root, name) for root, _, names in found for name in names)

    def glob(self, pattern: str) -> list[str]:
        return sorted(gfile().glob(pattern)) if is_stored(pattern) else LOCAL.glob(pattern)

    def size(self, path: str) -> int:
        return stores.stamp_of(path)[0] if is_stored(path) else LOCAL.size(path)

    def stamp(self, path: str) -> list[int]:
        """Returns size in bytes and time of the last change in nanoseconds."""
        if is_stored(path):
            return list(stores.stamp_of(path))
        status = os.stat(path)
        return [status.st_size, status.st_mtime_ns]

    def read_text(self, path: str) -> str:
        """Returns the content of a file in UTF-8.

        Raises:
          FileNotFoundError: if there is none.
        """
        if not is_stored(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
        text = stores.read(path)
        if text is None:
            raise FileNotFoundError(path)
        return text


STORAGE = TensorFlowStorage()
