"""Vectors quantised to 8 bits, whose inner products show which pairs may be near.

Processors multiply bytes more than twice as fast as float32. With x = x' + e and y = y' + f,
where x' and y' are the quantised vectors, the Cauchy-Schwarz inequality bounds the error:

    |x.y - x'.y'| = |e.y + x'.f| <= |e| |y| + (|x| + |e|) |f|

so a pair whose code product plus this bound is too low cannot be near.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from labse_tf.retrieval.vectors import ArrayLike

# Rotated coordinates of a unit vector are normally distributed, so that few are clipped.
_STANDARD_DEVIATIONS = 5.0
_SOURCE_STEPS, _ZERO = 127, 128
# 7 bits: with 8, processors that add pairs of products in 16 bits would overflow.
_TARGET_STEPS = 63
_SEED = 0
_ROWS_PER_BLOCK = 4096


@dataclasses.dataclass(frozen=True)
class Codes:
    """Coded vectors.

    Attributes:
      numbers: `[n, dim]`, uint8 for sources, int8 for targets.
      errors: float32 `[n]`, the Euclidean norms of the quantisation errors.
      longest: an upper bound of the vectors' lengths.
      step: the value of one quantisation step.
    """

    numbers: np.ndarray
    errors: np.ndarray
    longest: float
    step: float

    def __getitem__(self, which: slice | np.ndarray) -> Codes:
        return dataclasses.replace(self, numbers=self.numbers[which], errors=self.errors[which])


class Coder:
    """Codes vectors of dimension `dim` and about unit length."""

    def __init__(self, dim: int) -> None:
        # A rotation preserves inner products and spreads a few large coordinates over all.
        normal = np.random.default_rng(_SEED).normal(size=(dim, dim))
        self._rotation = np.linalg.qr(normal)[0].astype(np.float32)
        self._scale = _STANDARD_DEVIATIONS / math.sqrt(dim)

    def code_sources(self, vectors: np.ndarray) -> Codes:
        return self._code(vectors, _SOURCE_STEPS, zero=_ZERO, dtype=np.uint8)

    def code_targets(self, vectors: np.ndarray) -> Codes:
        return self._code(vectors, _TARGET_STEPS, zero=0, dtype=np.int8)

    def _code(self, vectors: np.ndarray, most: int, *, zero: int, dtype: type) -> Codes:
        rotated = vectors @ self._rotation
        step = np.float32(self._scale / most)
        numbers = np.clip(np.rint(rotated / step), -most, most)
        errors = np.linalg.norm(rotated - numbers * step, axis=1)
        longest = float(np.linalg.norm(vectors, axis=1).max())
        return Codes((numbers + zero).astype(dtype), errors, longest, float(step))


def code_all(
    vectors: ArrayLike,
    code: Callable[[np.ndarray], Codes],
    pool: ThreadPoolExecutor,
    *,
    folder: Path | None = None,
) -> Codes:
    """Codes vectors `[n, dim]` block by block, each in a thread of the pool.

    `code` is `Coder.code_sources` or `Coder.code_targets`. The numbers are kept in a temporary file
    in `folder` (an OSError if the disk is full); None: in memory.
    """
    some = code(vectors[:1])
    shape, dtype = vectors.shape, some.numbers.dtype
    errors = np.empty(shape[0], np.float32)
    if folder is None:
        numbers = np.empty(shape, dtype)
    else:
        # It has no name, and is gone with the last array that reads it.
        with tempfile.TemporaryFile(dir=folder) as file:
            # Otherwise a full disk would kill the process when the map is written to.
            os.posix_fallocate(file.fileno(), 0, math.prod(shape))
            # Indexing rows of a plain array is faster than of a memmap.
            numbers = np.asarray(np.memmap(file, dtype, "r+", shape=shape))

    def fill(start: int) -> float:
        block = code(vectors[start : start + _ROWS_PER_BLOCK])
        end = start + len(block.errors)
        numbers[start:end], errors[start:end] = block.numbers, block.errors
        return block.longest

    longest = max(pool.map(fill, range(0, shape[0], _ROWS_PER_BLOCK)))
    return Codes(numbers, errors, longest, some.step)


def bounds(
    sources: Codes, targets: Codes, *, likely: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Returns bounds of the difference between products of codes and of vectors.

    They are float32 `[n]`, for each source with any target, and `[m]`, for each target. Likely
    bounds are six standard deviations. The rounding errors of rotated unit vectors have random
    directions, so the standard deviation of the inner product of an error and a vector is the
    product of their lengths, divided by the square root of the dimension. (Errors of longer
    vectors, whose coordinates are clipped, point in the direction of the vectors.)
    """
    share = min(1.0, 6 / math.sqrt(sources.numbers.shape[1])) if likely else 1.0

    def bound(source_errors, target_errors):
        errors = source_errors * targets.longest + (sources.longest + source_errors) * target_errors
        return share * errors

    by_target = bound(sources.errors.max(), targets.errors)
    return bound(sources.errors, targets.errors.max()), by_target


def products(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns int32 `[n, m]`, the inner products of codes uint8 `[n, dim]` and int8 `[m, dim]`."""
    return _session().run(None, {"sources": sources, "targets": targets.T})[0]


@functools.cache
def _session():
    """Returns an ONNX Runtime session for byte matrix products, which NumPy computes slowly."""
    import onnxruntime
    from onnx import parser

    model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        products (uint8[n, dim] sources, int8[dim, m] targets) => (int32[n, m] products)
        <uint8 zero = {{{_ZERO}}}>
        {{ products = MatMulInteger(sources, targets, zero) }}""")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
