"""Hashes and stamps that record which files an output was made from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

_CHUNK_BYTES = 1 << 20


def sha256_of_file(path: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a file's content, in hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def sha256_of_files(
    paths: Iterable[str | os.PathLike[str]], *, root: str | os.PathLike[str]
) -> str:
    """Returns one SHA-256 over the names of files, relative to `root`, and their contents.

    It depends neither on the order of `paths` nor on the location of `root`, nor on that of files
    outside of it.
    """
    digest = hashlib.sha256()
    for name, path in sorted((_name(path, root), path) for path in paths):
        digest.update(f"{Path(name).as_posix()}\0{sha256_of_file(path)}\n".encode())
    return digest.hexdigest()


def _name(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> str:
    name = os.path.relpath(path, root)
    return os.path.basename(path) if name.startswith(os.pardir) else name


def stamps_of_files(paths: Iterable[str | os.PathLike[str]]) -> list[list]:
    """Returns path, size in bytes and mtime of each file, sorted: faster than hashes."""
    status = {os.fspath(path): os.stat(path) for path in paths}
    return [[path, status[path].st_size, status[path].st_mtime_ns] for path in sorted(status)]
