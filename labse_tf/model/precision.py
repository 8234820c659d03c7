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

_log = logging.getLogger("labse")
_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
# Linux's names for the instructions that multiply bfloat16 matrices; parts of oneDNN's names for
# the instruction sets that have them.
_CPU_FLAGS = ("avx512_bf16", "amx_bf16")
_ONEDNN_SETS = ("BF16", "FP16", "AMX", "AVX10", "ALL", "DEFAULT")


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


def native_bfloat16_of_cpu(cpuinfo: Path, environment: dict[str, str]) -> tuple[bool, str]:
    """Whether a CPU supports bfloat16 natively, and the reason.

    Args:
      cpuinfo: Linux's /proc/cpuinfo. Without it (other systems) the answer is no.
      environment: as oneDNN does, we respect ONEDNN_MAX_CPU_ISA, formerly DNNL_MAX_CPU_ISA.
    """
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        limit = environment.get(name, "DEFAULT").upper()
        if not any(part in limit for part in _ONEDNN_SETS):
            return False, f"{name}={limit}"
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    flags = next((line for line in lines if line.startswith("flags")), "")
    found = [flag for flag in _CPU_FLAGS if flag in flags.split()]
    return bool(found), f"CPU with {found[0]}" if found else "CPU without bfloat16 instructions"
