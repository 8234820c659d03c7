"""Runtimes for exported encoders: TensorFlow, ONNX Runtime and LiteRT.

Each takes the preprocessor's dict of int32 `[batch, length]` tensors, or arrays, and returns
`default`, float32 `[batch, dim]`, not normalised. Only the first needs TensorFlow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from labse_tf.errors import InputError

if TYPE_CHECKING:
    import tensorflow as tf

_ONNX_INPUTS = {
    "input_ids": "input_word_ids",
    "attention_mask": "input_mask",
    "token_type_ids": "input_type_ids",
}


class Runtime(Protocol):
    """A loaded encoder."""

    def run(self, packed: Mapping[str, tf.Tensor | np.ndarray]) -> np.ndarray:
        """Returns float32 `[batch, dim]`."""

    def count_weights(self) -> int | None:
        """Returns the number of weights; None if the format does not provide it."""


def open_runtime(encoder: Path) -> Runtime:
    """Loads a SavedModel folder, or a .onnx or .tflite file, according to its name.

    Raises:
      InputError: if it cannot be read, or its runtime is not installed.
    """
    runtime = {".onnx": OnnxRuntime, ".tflite": LiteRuntime}.get(encoder.suffix, SavedModelRuntime)
    try:
        return runtime(encoder)
    except ImportError as error:
        raise InputError(
            f"needs a library that is missing ({error})", path=encoder, remedy="install it"
        ) from error
    except Exception as error:  # ONNX Runtime's errors have no other base class.
        raise InputError(
            f"cannot be read ({str(error).splitlines()[0]})",
            path=encoder,
            remedy="export the model again",
        ) from error


class SavedModelRuntime:
    """`encoder/`."""

    def __init__(self, folder: Path) -> None:
        import tensorflow as tf

        self._encoder = tf.saved_model.load(str(folder))
        # As a tf.function, which skips unused outputs and reuses memory from layer to layer.
        self._default = tf.function(
            lambda packed: self._encoder(packed)["default"],
            input_signature=[
                {
                    name: tf.TensorSpec([None, None], tf.int32, name=name)
                    for name in _ONNX_INPUTS.values()
                }
            ],
        )

    def run(self, packed: Mapping[str, tf.Tensor | np.ndarray]) -> np.ndarray:
        return self._default(packed).numpy()

    def count_weights(self) -> int:
        return sum(
            math.prod(weight.shape) for weight in self._encoder.variables if weight.shape.rank
        )


class OnnxRuntime:
    """`onnx/*.onnx`."""

    def __init__(self, file: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = _cores()
        self._session = onnxruntime.InferenceSession(
            str(file), options, providers=["CPUExecutionProvider"]
        )

    def run(self, packed: Mapping[str, tf.Tensor | np.ndarray]) -> np.ndarray:
        inputs = {
            theirs: np.asarray(packed[ours], np.int64) for theirs, ours in _ONNX_INPUTS.items()
        }
        return self._session.run(["default"], inputs)[0]

    def count_weights(self) -> None:
        return None


class LiteRuntime:
    """`lite/*.tflite`."""

    def __init__(self, file: Path) -> None:
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(str(file), num_threads=_cores())
        self._run = interpreter.get_signature_runner()

    def run(self, packed: Mapping[str, tf.Tensor | np.ndarray]) -> np.ndarray:
        return self._run(**packed)["default"]

    def count_weights(self) -> None:
        return None


def _cores() -> int:
    return len(os.sched_getaffinity(0))
