"""The precision of layers: as configured, or chosen by what the device supports natively."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
import tf_keras

from labse_tf.config import ComputeConfig
from labse_tf.config.cpu import native_bfloat16_of_cpu

_log = logging.getLogger("labse")
_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}


@contextlib.contextmanager
def precision(compute: ComputeConfig) -> Iterator[None]:
    """Within this context, new layers compute in `compute.precision`; their weights are float32.

    "auto" is bfloat16 if the current strategy's devices support it natively, else float32.
    """
    on_tpu = isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy)
    before = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(_POLICIES[_chosen(compute.precision, on_tpu)])
    try:
        yield
    finally:
        tf_keras.mixed_precision.set_global_policy(before)


@functools.cache  # Logged once per run, however many models it builds.
def _chosen(asked: str, on_tpu: bool) -> str:
    """Returns "float32" or "bfloat16", and logs the choice."""
    if asked == "float32":
        return asked
    native, device = (True, "TPU") if on_tpu else _native_bfloat16()
    if asked == "auto":
        chosen = "bfloat16" if native else "float32"
        _log.info("computing in %s (%s)", chosen, device)
        return chosen
    if not native:
        _log.warning(
            "warning: computing in bfloat16, which is emulated here (%s) and can be many times "
            "slower than float32: compute.precision=auto chooses the faster one",
            device,
        )
    return asked


def _native_bfloat16() -> tuple[bool, str]:
    """Whether the GPUs, or the CPU if there are none, support bfloat16 natively; and the reason."""
    gpus = tf.config.get_visible_devices("GPU")
    if gpus:
        details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
        # NVIDIA GPUs from Ampere on. A GPU of unknown capability counts as too old.
        capability = min(one.get("compute_capability", (0, 0)) for one in details)
        return capability >= (8, 0), f"GPU of compute capability {'.'.join(map(str, capability))}"
    return native_bfloat16_of_cpu(Path("/proc/cpuinfo"), os.environ)
