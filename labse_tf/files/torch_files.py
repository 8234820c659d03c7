"""Reads what `torch.save` wrote, without PyTorch, and without running anything in it.

Such a file is a ZIP archive of a pickle and of the tensors' bytes. A pickle can name any function
to call; this reader knows the three names that tensors need, and refuses a file with another.
"""

from __future__ import annotations

import collections
import math
import os
import pickle
import zipfile
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labse_tf.errors import InputError
from labse_tf.files.textio import check_file

_DTYPES = {
    "FloatStorage": np.float32,
    "DoubleStorage": np.float64,
    "HalfStorage": np.float16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
}
# What a broken pickle or archive raises.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
)


class UnknownNameError(InputError):
    """A file names something else than tensors and containers.

    Attributes:
      name: what it names, with its module.
    """

    def __init__(self, name: str, path: str | os.PathLike[str]) -> None:
        super().__init__(
            f"names {name}, which is no tensor that this reader knows",
            path=path,
            remedy="name another file; if it should have tensors alone, do not open it elsewhere",
        )
        self.name = name


class _Refused(Exception):
    pass


class _StorageType(NamedTuple):
    dtype: type


def read_torch_file(path: str | os.PathLike[str]) -> Any:
    """Returns the content of a file of `torch.save`, with NumPy arrays for its tensors.

    Raises:
      InputError: if it is missing, no such file, of PyTorch before 1.6, or damaged.
      UnknownNameError: if it names anything else than tensors and containers.
    """
    path = check_file(path)
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise InputError(
            "is no file of torch.save, or of PyTorch before 1.6",
            path=path,
            remedy="fetch it again, or let PyTorch write it anew: "
            "torch.save(torch.load(OLD, weights_only=True), NEW)",
        ) from error
    with archive:
        try:
            (name,) = (one for one in archive.namelist() if one.endswith("/data.pkl"))
            with archive.open(name) as file:
                return _Unpickler(file, archive, name.removesuffix("data.pkl")).load()
        except _Refused as error:
            raise UnknownNameError(str(error), path) from error
        except _DAMAGE as error:
            raise InputError(
                f"is damaged ({type(error).__name__}: {error})", path=path, remedy="fetch it again"
            ) from error


class _Unpickler(pickle.Unpickler):
    """Knows the names that a file of tensors has, and no others."""

    def __init__(self, file, archive: zipfile.ZipFile, folder: str) -> None:
        super().__init__(file)
        self._archive, self._folder = archive, folder

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Rebuild()
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in _DTYPES:
            return _StorageType(_DTYPES[name])
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: tuple) -> np.ndarray:
        kind, storage, key, _, count = pid
        if kind != "storage" or not isinstance(storage, _StorageType) or not str(key).isdigit():
            raise _Refused(repr(pid))
        member = self._archive.getinfo(f"{self._folder}data/{key}")
        if member.compress_type != zipfile.ZIP_STORED:  # It could become any size.
            raise ValueError("tensors are compressed, which PyTorch never does")
        data = self._archive.read(member)
        return np.frombuffer(data, np.dtype(storage.dtype).newbyteorder("<"), count)


class _Rebuild:
    """Makes a tensor; a new object each time, without attributes that a pickle could set."""

    __slots__ = ()

    def __call__(
        self,
        storage: np.ndarray,
        offset: int,
        shape: Sequence[int],
        strides: Sequence[int],
        *_: Any,
    ) -> np.ndarray:
        """Returns the tensor as an array; strides are in elements, as in PyTorch."""
        if any(number < 0 for number in (offset, *shape, *strides)):
            raise ValueError("negative sizes")
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        numbers = math.prod(shape)
        # A stride of 0 would make any number of numbers of one.
        if numbers and (last >= len(storage) or numbers > len(storage)):
            raise ValueError(f"a tensor of {shape} reads beyond its {len(storage)} numbers")
        steps = [storage.itemsize * step for step in strides]
        view = np.lib.stride_tricks.as_strided(storage[offset:], shape, steps, writeable=False)
        return view.copy()
