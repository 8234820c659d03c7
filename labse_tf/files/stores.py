"""Files in stores that TensorFlow opens, such as gs://; it is imported when one is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from labse_tf.errors import InputError
from labse_tf.files.local_paths import scheme_of
from labse_tf.files.outputs import whole_file

# What stands beside a file and belongs to it.
SIDE_FILES = (".calibration.json",)
# Object stores have no folders.
_WITHOUT_FOLDERS = ("gs", "s3")
# Size in bytes and time of the last change, in nanoseconds.
Stamp = tuple[int, int]


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
        raise InputError(
            f"cannot be read ({error.message.splitlines()[0]})",
            path=url,
            remedy="check the URL, the network and the credentials",
        ) from error


def require_supported(url: str) -> None:
    """Raises InputError if TensorFlow cannot open URLs of this scheme."""
    from tensorflow.errors import UnimplementedError

    try:
        gfile().exists(url)
    except UnimplementedError as error:
        raise InputError(
            "TensorFlow cannot read this scheme",
            path=url,
            remedy="use gs://, install tensorflow-io for others, or copy the files to disk",
        ) from error


def exists(url: str) -> bool:
    return gfile().exists(url)


def list_files(url: str) -> dict[str, Stamp]:
    """Returns the stamps of a folder's files, or of a file and what belongs to it.

    Names are what follows `url`, such as "/checkpoints/checkpoint"; that of a file is "".
    """
    if gfile().isdir(url):
        found = gfile().walk(url)
        files = [gfile().join(root, name) for root, _, names in found for name in names]
    else:
        files = [file for file in (url, *(f"{url}{end}" for end in SIDE_FILES)) if exists(file)]
    return {file[len(url) :]: stamp_of(file) for file in files}


def stamp_of(url: str) -> Stamp:
    status = gfile().stat(url)
    return status.length, status.mtime_nsec


def read(url: str) -> str | None:
    """Returns the content of a file in UTF-8, None if there is none."""
    if not exists(url):
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
    if exists(url):
        (gfile().rmtree if gfile().isdir(url) else gfile().remove)(url)


def _make_place(url: str) -> None:
    scheme = scheme_of(url)
    if scheme not in _WITHOUT_FOLDERS:
        gfile().makedirs(url.rpartition("/")[0])
    if scheme == "ram":
        remove(url)  # There, what is written is added to what is there.
