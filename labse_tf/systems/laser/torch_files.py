"""Reads what `torch.save` wrote, without PyTorch, and without running anything in it.

Such a file is a ZIP archive of a pickle and of the tensors' bytes. Before PyTorch 1.6 it was a row
of pickles (a magic number, a version, facts about the machine, the content, the keys of storages),
then those storages, which have the tensors' numbers, each after its length. A pickle can name any
function to call; this reader knows the three names that tensors need, and refuses a file with
another.
"""

from __future__ import annotations

import collections
import functools
import math
import os
import pickle
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from labse_tf.errors import InputError
from labse_tf.files.textio import check_file

_DTYPES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
}
_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001
_MAGIC_PICKLE = pickle.dumps(_MAGIC, protocol=2)
# (type, key, count of numbers) -> the numbers of a storage.
_Storages = Callable[[np.dtype, str, int], np.ndarray]
# A broken pickle or archive raises these.
_DAMAGE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError),
    *(ValueError, pickle.UnpicklingError, zipfile.BadZipFile, zlib.error),
)


class _Refused(Exception):
    pass


class _StorageType(NamedTuple):
    dtype: np.dtype


def read_torch_file(path: str | os.PathLike[str]) -> Any:
    """Returns the content of a file of `torch.save`, with NumPy arrays for its tensors.

    Raises InputError if the file is missing, damaged, or of another kind, or names anything else
    than tensors and containers.
    """
    path, remedy = check_file(path), "fetch it again"
    with open(path, "rb") as file:
        if file.peek(len(_MAGIC_PICKLE)).startswith(_MAGIC_PICKLE):
            read = _read_row_of_pickles
        elif zipfile.is_zipfile(file):
            read = _read_archive
        else:
            raise InputError("is no file of torch.save", path=path, remedy=remedy)
        file.seek(0)
        try:
            return read(file)
        except _Refused as error:
            problem = f"names {error}, which is no tensor that this reader knows"
            remedy = "name another file; if it should have tensors alone, do not open it elsewhere"
            raise InputError(problem, path=path, remedy=remedy) from error
        except _DAMAGE as error:
            problem = f"is damaged ({type(error).__name__}: {error})"
            raise InputError(problem, path=path, remedy=remedy) from error


def _read_archive(file: BinaryIO) -> Any:
    with zipfile.ZipFile(file) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("/data.pkl"))

        @functools.cache
        def storage(dtype: np.dtype, key: str, count: int) -> np.ndarray:
            member = archive.getinfo(f"{name.removesuffix('data.pkl')}data/{key}")
            if member.compress_type != zipfile.ZIP_STORED:  # It could become any size.
                raise ValueError("tensors are compressed, which PyTorch never does")
            return np.frombuffer(archive.read(member), dtype, count)

        with archive.open(name) as pickled:
            return _Unpickler(pickled, storage).load()


def _read_row_of_pickles(file: BinaryIO) -> Any:
    left, storages = os.fstat(file.fileno()).st_size, {}

    def storage(dtype: np.dtype, key: str, count: int) -> np.ndarray:
        """Returns room for the numbers: they come after the tensors, which are views of them."""
        nonlocal left
        if key not in storages:
            left -= count * dtype.itemsize
            if count < 0 or left < 0:
                raise ValueError(f"has no {count} numbers")
            storages[key] = np.empty(count, dtype)
        if (storages[key].dtype, len(storages[key])) != (dtype, count):
            raise ValueError(f"storage {key} has two sizes")
        return storages[key]

    magic, version, facts, content, keys = (
        _Unpickler(file, one).load() for one in (None, None, None, storage, None)
    )
    if (magic, version, facts["little_endian"]) != (_MAGIC, _VERSION, True):
        raise ValueError("of an unknown version, or written by a big-endian machine")
    if sorted(keys) != sorted(storages):
        raise ValueError("other storages than its tensors name")
    for key in keys:
        numbers, length = storages[key], int.from_bytes(file.read(8), "little")
        if length != len(numbers) or file.readinto(numbers.view(np.uint8)) != numbers.nbytes:
            raise EOFError(f"storage {key} is cut off")
    return content


class _Unpickler(pickle.Unpickler):
    """Knows the names that a file of tensors has, and no others."""

    def __init__(self, file: BinaryIO, storage: _Storages | None) -> None:
        super().__init__(file)
        self._storage = storage

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Rebuild()
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in _DTYPES:
            return _StorageType(np.dtype(_DTYPES[name]))
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: tuple) -> np.ndarray:
        kind, storage, key, _, count, *view = pid
        if kind != "storage" or not isinstance(storage, _StorageType) or not str(key).isdigit():
            raise _Refused(repr(pid))
        if self._storage is None or view not in ([], [None]):
            raise ValueError("a tensor where there is none, or of PyTorch before 0.4")
        return self._storage(storage.dtype, key, count)


class _Rebuild:
    """Makes a tensor; a new object each time, without attributes that a pickle could set."""

    __slots__ = ()

    def __call__(self, storage: np.ndarray, offset: int, shape: Sequence, strides: Sequence, *_):
        """Returns a view of a storage; strides are in elements, as in PyTorch."""
        if any(number < 0 for number in (offset, *shape, *strides)):
            raise ValueError("negative sizes")
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        numbers = math.prod(shape)
        # A stride of 0 would make any number of numbers of one.
        if numbers and (last >= len(storage) or numbers > len(storage)):
            raise ValueError(f"a tensor of {shape} reads beyond its {len(storage)} numbers")
        steps = [storage.itemsize * step for step in strides]
        return np.lib.stride_tricks.as_strided(storage[offset:], shape, steps, writeable=False)
