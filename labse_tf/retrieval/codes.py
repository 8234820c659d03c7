"""Vectors as whole numbers of a byte, whose products tell which pairs may be near.

Processors multiply bytes more than twice as fast as float32. With x = x' + e and y = y' + f,
where x' and y' are what the codes stand for, the Cauchy-Schwarz inequality bounds what is lost:

    |x.y - x'.y'| = |e.y + x'.f| <= |e| |y| + (|x| + |e|) |f|

so a pair that is not near by its codes and this bound is not near.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

# The rotated coordinates of a unit vector are distributed as normal ones; few are cut off here.
_STANDARD_DEVIATIONS = 5.0
_SOURCE_STEPS, _ZERO = 127, 128
# Of 7 bits: processors that add pairs of products in 16 bits would overflow with 8.
_TARGET_STEPS = 63
_SEED = 0


class Codes(NamedTuple):
    """Coded vectors.

    Attributes:
      numbers: uint8 `[n, dim]` of sources, int8 of targets.
      errors: float32 `[n]`, the length of what a vector lost.
      longest: the length of the longest vector.
    """

    numbers: np.ndarray
    errors: np.ndarray
    longest: float


class Coder:
    """Codes vectors of one dimension and of about unit length.

    Attributes:
      unit: the product of codes that stands for an inner product of 1 is 1 / unit.
    """

    def __init__(self, dim: int) -> None:
        # A rotation changes no product, and spreads what a few large coordinates hold over all.
        normal = np.random.default_rng(_SEED).normal(size=(dim, dim))
        self._rotation = np.linalg.qr(normal)[0].astype(np.float32)
        self._scale = _STANDARD_DEVIATIONS / math.sqrt(dim)
        self.unit = self._scale**2 / (_SOURCE_STEPS * _TARGET_STEPS)

    def code_sources(self, vectors: np.ndarray) -> Codes:
        """Codes float32 `[n, dim]`."""
        steps, *facts = self._steps(vectors, _SOURCE_STEPS)
        return Codes((steps + _ZERO).astype(np.uint8), *facts)

    def code_targets(self, vectors: np.ndarray) -> Codes:
        """Codes float32 `[n, dim]`."""
        steps, *facts = self._steps(vectors, _TARGET_STEPS)
        return Codes(steps.astype(np.int8), *facts)

    def _steps(self, vectors: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, float]:
        rotated = vectors @ self._rotation
        step = np.float32(self._scale / most)
        steps = np.clip(np.rint(rotated / step), -most, most)
        errors = np.linalg.norm(rotated - steps * step, axis=1)
        return steps, errors, float(np.linalg.norm(vectors, axis=1).max())


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
