"""Vectors on disk: one `.npy` file, or a folder of such shards, read one slice at a time."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from labse_tf.embedding import quantisation
from labse_tf.errors import InputError
from labse_tf.files.staging import input_path

_FLOATS = (np.dtype(np.float32), np.dtype(np.float16))
_QUANTISED = tuple(one.dtype for one in quantisation.QUANTISED.values())
_SHARD = re.compile(r"part-(\d{5})-of-(\d{5})\.npy")
_ROWS_PER_CHECK = 8192
# Far above the rounding of float16, far below the effect of not normalising.
_LENGTH_TOLERANCE = 0.01


class ArrayLike(Protocol):
    """Vectors `[n, dim]` in memory or on disk, whose slices are arrays."""

    shape: tuple[int, ...]

    def __getitem__(self, which: Any) -> np.ndarray: ...


class _Shard:
    def __init__(
        self, path: Path, start: int, array: np.memmap, calibration: quantisation.Calibration | None
    ) -> None:
        self.path, self.start, self.dtype = path, start, array.dtype
        self.shape = len(array), calibration.dim if calibration else array.shape[1]
        self.map = functools.partial(np.memmap, path, array.dtype, "r", array.offset, array.shape)
        self._calibration = calibration

    @functools.cached_property
    def _kept_map(self) -> np.ndarray:
        # For scattered rows, mapping a page takes longer than copying from it.
        return np.asarray(self.map())

    def __getitem__(self, which: slice | np.ndarray) -> np.ndarray:
        # Slices are mapped again each time, so that pages already read do not count as this
        # process's memory.
        is_slice = isinstance(which, slice)
        rows = np.array(self.map()[which]) if is_slice else self._kept_map.take(which, axis=0)
        if self._calibration:
            return self._calibration.dequantise(rows)
        return rows.astype(np.float32, copy=False)


class Vectors:
    """An array-like `[n, dim]` on disk.

    Attributes:
      path: the file or folder.
      shape: `(n, dim)`.
      dtype: as stored: float32, float16, int8, or uint8 for binary vectors. Reading returns
        float32; quantised vectors are scaled to unit length.
    """

    def __init__(self, path: Path, shards: Sequence[_Shard]) -> None:
        """See `open_vectors`."""
        self.path, self.dtype, self._shards = path, shards[0].dtype, shards
        self.shape = (sum(shard.shape[0] for shard in shards), shards[0].shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def check(self, used: np.ndarray | None = None) -> None:
        """Checks all vectors, or the rows where bool `used` `[n]` is true, reading each once.

        Raises:
          InputError: if a row contains NaN or infinity or does not have unit length (`line` is the
            row in its file, counted from 1).
        """
        for shard in self._shards:
            for start in range(0, shard.shape[0], _ROWS_PER_CHECK):
                block = shard[start : start + _ROWS_PER_CHECK]
                bad = not_unit(block)
                if used is not None:
                    bad = bad[used[shard.start + start + bad]]
                if len(bad):
                    row, length = start + int(bad[0]) + 1, np.linalg.norm(block[bad[0]])
                    wrong, remedy = f"has length {length:.4g}, not 1", "divide it by its length"
                    if not np.isfinite(length):
                        wrong, remedy = "holds NaN or infinity", "embed the text again"
                    elif not length:
                        wrong, remedy = "is all zeros", "leave its line out"
                    problem = f"the vector in row {row} {wrong}"
                    raise InputError(problem, path=shard.path, line=row, remedy=remedy)

    def __getitem__(self, which: slice | np.ndarray) -> np.ndarray:
        """Returns float32 `[rows, dim]` for a slice without a step or an array of indices >= 0."""
        if isinstance(which, slice):
            start, stop, step = which.indices(len(self))
            if step != 1:
                raise IndexError("a slice of vectors has no step")
            parts = [
                shard[max(start - shard.start, 0) : stop - shard.start]
                for shard in self._shards
                if shard.start < stop and shard.start + shard.shape[0] > start
            ]
            if not parts:
                return np.empty((0, self.shape[1]), np.float32)
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        places = np.asarray(which)
        if len(places) and not 0 <= places.min() <= places.max() < len(self):
            raise IndexError(f"an index is outside 0 to {len(self) - 1}")
        if len(self._shards) == 1:
            return self._shards[0][places]
        rows = np.empty((len(places), self.shape[1]), np.float32)
        for shard in self._shards:
            here = (places >= shard.start) & (places < shard.start + shard.shape[0])
            if here.any():
                rows[here] = shard[places[here] - shard.start]
        return rows


@dataclasses.dataclass(frozen=True)
class Selection:
    """Some rows of vectors, as an array-like of their own.

    Attributes:
      vectors: float32 `[n, dim]`, in memory or on disk.
      rows: `[m]` ints, indices of the selected rows.
    """

    vectors: ArrayLike
    rows: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.vectors.shape[1]

    def __getitem__(self, which: slice | np.ndarray) -> np.ndarray:
        return self.vectors[self.rows[which]]


def open_vectors(
    path: str | os.PathLike[str], *, dim: int | None = None, check: bool = True
) -> Vectors:
    """Opens vectors, and checks them all unless `check` is False.

    Args:
      path: `FILE.npy`, float32 or float16 `[n, dim]`, or quantised with its calibration next to it;
        or a folder of `part-?????-of-?????.npy`, which are concatenated in the order of their
        names.
      dim: the required dimension; None for any.
      check: whether to read the vectors: see `Vectors.check`.

    Raises:
      InputError: if a file, a shard or a calibration is missing or wrong, the dimension differs,
        there are no rows, or as `Vectors.check`.
    """
    path = Path(input_path(path))
    shards: list[_Shard] = []
    start = 0
    for file in _files(path):
        shard = _open_shard(file, start)
        expected = shards[0].shape[1] if shards else dim
        if expected is not None and shard.shape[1] != expected:
            problem = f"holds vectors of dimension {shard.shape[1]}, where {expected} is expected"
            raise InputError(problem, path=file, remedy="embed both sides with the same model")
        if shards and shard.dtype != shards[0].dtype:
            problem = f"holds {shard.dtype}, but {shards[0].path.name} holds {shards[0].dtype}"
            raise InputError(problem, path=file, remedy="name the shards of one job")
        shards.append(shard)
        start += shard.shape[0]
    if not start:
        raise InputError("holds no vectors", path=path, remedy="embed some text")
    vectors = Vectors(path, shards)
    if check:
        vectors.check()
    return vectors


def not_unit(vectors: np.ndarray) -> np.ndarray:
    """Returns the indices of the rows of `[n, dim]` without unit length, including NaN rows."""
    squares = np.einsum("nd,nd->n", vectors, vectors)
    # Negated so that NaN is reported.
    return np.flatnonzero(~(np.abs(np.sqrt(squares) - 1) <= _LENGTH_TOLERANCE))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError("no such file", path=path, remedy="make it with `labse embed`")
    found = {file.name: _SHARD.fullmatch(file.name) for file in path.iterdir()}
    totals = {int(match[2]) for match in found.values() if match}
    if len(totals) != 1:
        problem = "holds shards of several jobs" if totals else "holds no part-?????-of-?????.npy"
        remedy = "name a .npy file, or a folder of the shards of one job"
        raise InputError(problem, path=path, remedy=remedy)
    [total] = totals
    names = [f"part-{number:05d}-of-{total:05d}.npy" for number in range(total)]
    if missing := [name for name in names if name not in found]:
        raise InputError(f"{missing[0]} is missing", path=path, remedy="run its job again")
    return [path / name for name in names]


def _open_shard(path: Path, start: int) -> _Shard:
    remedy = "make it again with `labse embed`, or by numpy.save in C order"
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        # NumPy's own message would suggest allowing pickles.
        problem = "is not a complete .npy array of numbers"
        raise InputError(problem, path=path, remedy=remedy) from error
    if not isinstance(array, np.memmap):
        raise InputError("is not a .npy file", path=path, remedy=remedy)
    known = array.dtype in (*_FLOATS, *_QUANTISED)
    if array.ndim != 2 or not known or not array.flags.c_contiguous:
        problem = f"holds {array.dtype} {list(array.shape)}, not vectors [rows, dimension]"
        raise InputError(problem, path=path, remedy=remedy)
    calibration = None
    if array.dtype in _QUANTISED:
        calibration = quantisation.read_calibration(path)
        if (calibration.dtype, calibration.columns) != (array.dtype, array.shape[1]):
            problem = f"is for {calibration.kind} vectors in {calibration.columns} columns, but "
            problem += f"{path.name} holds {array.dtype} in {array.shape[1]}"
            where = quantisation.calibration_path(path)
            raise InputError(problem, path=where, remedy=quantisation.REMEDY)
    return _Shard(path, start, array, calibration)


def is_binary(vectors: ArrayLike) -> bool:
    """Whether these are binary vectors on disk, or some of them."""
    whole = vectors.vectors if isinstance(vectors, Selection) else vectors
    return isinstance(whole, Vectors) and whole.dtype == quantisation.Binary.dtype


def read_bits(vectors: Vectors | Selection) -> np.ndarray:
    """Reads binary vectors as they are stored, uint8 `[n, ceil(dim / 8)]`, into memory."""
    if isinstance(vectors, Selection):
        return read_bits(vectors.vectors)[vectors.rows]
    return np.concatenate([shard.map() for shard in vectors._shards])
