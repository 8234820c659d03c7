"""File names given by a user: local paths, or file:// URLs of local paths."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from labse_tf.errors import InputError

# One slash is enough: RFC 8089 allows file:/path, and pathlib turns gs://bucket into gs:/bucket.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_THIS_MACHINE = ("", "localhost")
# Schemes of Beam jobs, and of TensorFlow, whose own memory is ram.
STORE_SCHEMES, TENSORFLOW_SCHEMES = ("s3", "gs", "hdfs"), ("gs", "ram")
_STORE_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def scheme_of(path: str) -> str | None:
    """Returns the scheme of a URL, in lower case; None for a local path, or a file:// URL."""
    url = _STORE_URL.match(path)
    scheme = url[1].lower() if url else None
    return None if scheme == "file" else scheme


def local_path(name: str | os.PathLike[str]) -> str:
    """Returns `name`, or the path of a file:// URL (RFC 8089); InputError for any other URL."""
    name = os.fspath(name)
    url = _URL.match(name)
    if url is None:
        return name
    scheme = url[1].lower()
    if scheme != "file":
        remedy = "give a local path: mount it, or copy the files from or to there"
        raise InputError(f"the scheme {scheme}:// is not supported", path=name, remedy=remedy)
    host, path = "", name[len("file:") :]
    if path.startswith("//"):
        host, slash, path = path[2:].partition("/")
        path = slash + path
    path = unquote(path, errors="surrogateescape")  # `?` may belong to a glob.
    if host.lower() not in _THIS_MACHINE or not path or "\0" in path:
        remedy = "write file:///absolute/path"
        raise InputError("is not a file on this machine", path=name, remedy=remedy)
    return path
