"""Vectors as whole numbers of a byte, whose products tell which pairs may be near.

Processors multiply bytes more than twice as fast as float32. With x = x' + e and y = y' + f,
where x' and y' are what the codes stand for, the Cauchy-Schwarz inequality bounds what is lost:

    |x.y - x'.y'| = |e.y + x'.f| <= |e| |y| + (|x| + |e|) |f|

so a pair that is not near by its codes and this bound is not near.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from labse_tf.retrieval.array_like import ArrayLike

# The rotated coordinates of a unit vector are distributed as normal ones; few are cut off here.
_STANDARD_DEVIATIONS = 5.0
_SOURCE_STEPS, _ZERO = 127, 128
# Of 7 bits: processors that add pairs of products in 16 bits would overflow with 8.
_TARGET_STEPS = 63
_SEED = 0
_ROWS_PER_BLOCK = 4096


@dataclasses.dataclass(frozen=True)
class Codes:
    """Coded vectors.

    Attributes:
      numbers: uint8 `[n, dim]` of sources, int8 of targets.
      errors: float32 `[n]`, the length of what a vector lost.
      longest: the length of the longest vector, or more.
      step: what a number of 1 stands for.
    """

    numbers: np.ndarray
    errors: np.ndarray
    longest: float
    step: float

    def __getitem__(self, which: slice | np.ndarray) -> Codes:
        return dataclasses.replace(self, numbers=self.numbers[which], errors=self.errors[which])


class Coder:
    """Codes vectors of one dimension and of about unit length."""

    def __init__(self, dim: int) -> None:
        # A rotation changes no product, and spreads what a few large coordinates hold over all.
        normal = np.random.default_rng(_SEED).normal(size=(dim, dim))
        self._rotation = np.linalg.qr(normal)[0].astype(np.float32)
        self._scale = _STANDARD_DEVIATIONS / math.sqrt(dim)

    def code_sources(self, vectors: np.ndarray) -> Codes:
        """Codes float32 `[n, dim]`."""
        codes = self._code(vectors, _SOURCE_STEPS)
        return dataclasses.replace(codes, numbers=(codes.numbers + _ZERO).astype(np.uint8))

    def code_targets(self, vectors: np.ndarray) -> Codes:
        """Codes float32 `[n, dim]`."""
        codes = self._code(vectors, _TARGET_STEPS)
        return dataclasses.replace(codes, numbers=codes.numbers.astype(np.int8))

    def _code(self, vectors: np.ndarray, most: int) -> Codes:
        rotated = vectors @ self._rotation
        step = np.float32(self._scale / most)
        numbers = np.clip(np.rint(rotated / step), -most, most)
        errors = np.linalg.norm(rotated - numbers * step, axis=1)
        return Codes(numbers, errors, float(np.linalg.norm(vectors, axis=1).max()), float(step))


def code_all(
    vectors: ArrayLike,
    code: Callable[[np.ndarray], Codes],
    pool: ThreadPoolExecutor,
    *,
    file: Path | None = None,
) -> Codes:
    """Codes vectors a block at a time.

    Args:
      vectors: float `[n, dim]`.
      code: `Coder.code_sources` or `Coder.code_targets`.
      pool: its threads take a block each.
      file: a `.npy` that holds the numbers; None for memory.

    Raises:
      OSError: if the disk is full.
    """
    some = code(vectors[:1])
    shape, dtype = vectors.shape, some.numbers.dtype
    if file is None:
        numbers = np.empty(shape, dtype)
    else:
        numbers = np.lib.format.open_memmap(file, "w+", dtype, shape)
        with open(file, "r+b") as handle:
            # Else a full disk would kill the process when the map is written to.
            os.posix_fallocate(handle.fileno(), 0, file.stat().st_size)
    errors = np.empty(shape[0], np.float32)

    def fill(start: int) -> float:
        block = code(vectors[start : start + _ROWS_PER_BLOCK])
        end = start + len(block.errors)
        numbers[start:end], errors[start:end] = block.numbers, block.errors
        return block.longest

    longest = max(pool.map(fill, range(0, shape[0], _ROWS_PER_BLOCK)))
    # A plain array of the map: its rows are taken faster.
    return Codes(np.asarray(numbers), errors, longest, some.step)


def bounds(sources: Codes, targets: Codes) -> tuple[np.ndarray, np.ndarray]:
    """Returns how far products of codes may be from those of the vectors.

    Returns:
      Float32 `[n]`, of each source and any target; and `[m]`, of each target and any source.
    """

    def bound(source_errors, target_errors):
        return source_errors * targets.longest + (sources.longest + source_errors) * target_errors

    return (
        bound(sources.errors, targets.errors.max()),
        bound(sources.errors.max(), targets.errors),
    )


def likely_bounds(sources: Codes, targets: Codes) -> tuple[np.ndarray, np.ndarray]:
    """As `bounds`, of nearly all products: six standard deviations.

    What rounding leaves of rotated unit vectors points anywhere, so that its product with another
    has the standard deviation of the product of both lengths, divided by the root of the dimension.
    (Of longer vectors coordinates are cut off, and what is cut off points as they do.)
    """
    share = min(1.0, 6 / math.sqrt(sources.numbers.shape[1]))
    by_source, by_target = bounds(sources, targets)
    return share * by_source, share * by_target


def products(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns int32 `[n, m]`, the products of codes, in this thread alone.

    Args:
      sources: uint8 `[n, dim]`.
      targets: int8 `[m, dim]`.
    """
    return _session().run(None, {"sources": sources, "targets": targets.T})[0]


@functools.cache
def _session():
    """ONNX Runtime's product of matrices of bytes; NumPy has none that is fast."""
    import onnxruntime
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["sources", "targets", "zero"], ["products"])],
        "products",
        [
            helper.make_tensor_value_info("sources", TensorProto.UINT8, ["n", "dim"]),
            helper.make_tensor_value_info("targets", TensorProto.INT8, ["dim", "m"]),
        ],
        [helper.make_tensor_value_info("products", TensorProto.INT32, ["n", "m"])],
        [helper.make_tensor("zero", TensorProto.UINT8, [], [_ZERO])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
