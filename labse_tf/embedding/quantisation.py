"""Vectors in one byte or one bit per number, and the calibration that a file of them is read with.

The calibration of `vectors.npy` is `vectors.npy.calibration.json`, computed from its first rows.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import ClassVar

import numpy as np

from labse_tf.errors import InputError
from labse_tf.files.outputs import write_json

REMEDY = "keep the file that `labse embed` writes beside the vectors, or embed again"
_SUFFIX = ".calibration.json"
_STEPS = 127
# Numbers of a dimension that is no larger than this in the sample may be anything up to 1.
_SMALLEST = 1e-6
# Rows of zeros added to the sample, so that the means of a few rows do not count for much.
_ZERO_ROWS = 64


@dataclasses.dataclass(frozen=True)
class Int8:
    """Numbers as multiples of a step, -127 to 127.

    Attributes:
      scales: float32 `[dim]`, the step of each dimension.
    """

    scales: np.ndarray
    kind: ClassVar[str] = "int8"
    dtype: ClassVar[np.dtype] = np.dtype(np.int8)

    @classmethod
    def fit(cls, sample: np.ndarray) -> Int8:
        """Returns the steps with which the largest numbers of float32 `[n, dim]` fit."""
        largest = np.abs(sample).max(axis=0)
        return cls(np.where(largest > _SMALLEST, largest, 1).astype(np.float32) / _STEPS)

    @property
    def dim(self) -> int:
        return len(self.scales)

    columns = dim

    def quantise(self, vectors: np.ndarray) -> np.ndarray:
        """Returns int8 `[n, dim]`: at most half a step off, if no larger than in the sample."""
        return np.clip(np.rint(vectors / self.scales), -_STEPS, _STEPS).astype(np.int8)

    def dequantise(self, rows: np.ndarray) -> np.ndarray:
        """Returns float32 `[n, dim]`, scaled to unit length; rows of zeros stay zeros."""
        vectors = rows * self.scales
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
        vectors /= np.where(lengths == 0, 1, lengths)[:, np.newaxis]
        return vectors


@dataclasses.dataclass(frozen=True)
class Binary:
    """For each number one bit, which says whether it is above a threshold.

    Attributes:
      thresholds: float32 `[dim]`.
    """

    thresholds: np.ndarray
    kind: ClassVar[str] = "binary"
    dtype: ClassVar[np.dtype] = np.dtype(np.uint8)

    @classmethod
    def fit(cls, sample: np.ndarray) -> Binary:
        """Returns the means of float32 `[n, dim]` as thresholds, near 0 if n is small."""
        means = sample.sum(axis=0, dtype=np.float64) / (len(sample) + _ZERO_ROWS)
        return cls(means.astype(np.float32))

    @property
    def dim(self) -> int:
        return len(self.thresholds)

    @property
    def columns(self) -> int:
        """Bytes per vector."""
        return math.ceil(self.dim / 8)

    def quantise(self, vectors: np.ndarray) -> np.ndarray:
        """Returns uint8 `[n, ceil(dim / 8)]` for finite `[n, dim]`, packed as by `numpy.packbits`.

        A row of zeros has no bit set, and any other row at least one.
        """
        above = vectors - self.thresholds
        bits = above > 0
        bits[np.arange(len(bits)), above.argmax(axis=1)] = True
        bits &= vectors.any(axis=1, keepdims=True)
        return np.packbits(bits, axis=1)

    def dequantise(self, rows: np.ndarray) -> np.ndarray:
        """Returns float32 `[n, dim]`, 1 or -1 divided by the square root of `dim`.

        Rows without a bit become zeros.
        """
        bits = np.unpackbits(rows, axis=1, count=self.dim)
        unit = np.float32(1 / math.sqrt(self.dim))
        vectors = np.where(bits, unit, -unit)
        vectors[~rows.any(axis=1)] = 0
        return vectors


Calibration = Int8 | Binary
QUANTISED: dict[str, type[Calibration]] = {one.kind: one for one in (Int8, Binary)}


def calibration_path(vectors: Path) -> Path:
    """Returns where the calibration of a `.npy` file is kept."""
    return vectors.with_name(vectors.name + _SUFFIX)


def write_calibration(vectors: Path, calibration: Calibration) -> None:
    """Writes the calibration of a `.npy` file next to it, replacing an older one."""
    numbers = {name: list(map(float, row)) for name, row in vars(calibration).items()}
    facts = {"kind": calibration.kind, "dim": calibration.dim} | numbers
    write_json(calibration_path(vectors), facts, overwrite=True)


def read_calibration(vectors: Path) -> Calibration:
    """Reads the calibration of a `.npy` file.

    Raises:
      InputError: if it is missing or broken.
    """
    path = calibration_path(vectors)
    if not path.is_file():
        problem = f"holds quantised vectors, but its calibration {path.name} is missing"
        raise InputError(problem, path=vectors, remedy=REMEDY)
    try:
        return _parse(path.read_text("utf-8"))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError("is not a calibration", path=path, remedy=REMEDY) from error


def _parse(text: str) -> Calibration:
    facts = json.loads(text)
    kind = QUANTISED[facts["kind"]]
    (name,) = (field.name for field in dataclasses.fields(kind))
    numbers = np.array(facts[name], np.float32)
    if numbers.shape != (facts["dim"],) or not len(numbers) or not np.isfinite(numbers).all():
        raise ValueError(f"{name} are {numbers.shape} numbers")
    if kind is Int8 and not (numbers > 0).all():
        raise ValueError("a step is not above 0")
    return kind(numbers)
