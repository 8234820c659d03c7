"""The devices that a plan can be made for, and whether this CPU computes bfloat16 natively."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labse_tf.errors import InputError

CPU = "cpu"
_GB, _TERA = 1e9, 1e12
# Width of the square matrices whose products measure the speed of this machine.
_WIDTH, _TURNS = 2048, 3
# Products of bfloat16 against float32, where the CPU has them: docs/pretraining.md measures 2.2.
_TIMES_AS_FAST = 2
# Linux's names for the instructions that multiply bfloat16 matrices; parts of oneDNN's names for
# the instruction sets that have them.
_CPU_FLAGS = ("avx512_bf16", "amx_bf16")
_ONEDNN_SETS = ("BF16", "FP16", "AMX", "AVX10", "ALL", "DEFAULT")


@dataclass(frozen=True)
class Device:
    """The device of a replica.

    Attributes:
      name: as for `--device`.
      memory: bytes.
      peaks: floating-point operations per second by precision; without "bfloat16", it has none.
      compiles: whether XLA compiles the whole step, as on TPUs.
      runtime: bytes that TensorFlow takes for itself.
      efficiency: the share of the peak that training is assumed to reach.
    """

    name: str
    memory: float
    peaks: dict[str, float]
    compiles: bool = False
    runtime: float = 0.0
    efficiency: float = 0.4

    def precision(self, wanted: str) -> str:
        """Returns the precision that `compute.precision` means here; refuses emulated bfloat16."""
        if wanted == "auto":
            return "bfloat16" if "bfloat16" in self.peaks else "float32"
        if wanted not in self.peaks:
            problem = f"--device {self.name} does not compute in 'compute.precision' {wanted!r}"
            raise InputError(problem, remedy="set it to auto")
        return wanted


def _tpu(name: str, gigabytes: float, teraflops: float) -> Device:
    # Products of float32 matrices take bfloat16 too, unless told otherwise.
    peaks = {"bfloat16": teraflops * _TERA, "float32": teraflops * _TERA}
    return Device(name, gigabytes * _GB, peaks, compiles=True)


def _gpu(name: str, gigabytes: float, teraflops: float, of_float32: float) -> Device:
    peaks = {"float32": of_float32 * _TERA}
    if teraflops:
        peaks["bfloat16"] = teraflops * _TERA
    return Device(name, gigabytes * _GB, peaks, runtime=0.6 * _GB)


# Memory and peaks as their makers publish them: of a core for TPU v2 and v3 (Jouppi et al. 2020,
# CACM 63(7)), of a chip for later ones (Google Cloud's documentation of TPUs), and NVIDIA's data
# sheets, without sparsity; float32 by TF32 where there is that, as TensorFlow computes by default.
_DEVICES = {
    one.name: one
    for one in (
        _tpu("tpu-v2", 8, 23),
        _tpu("tpu-v3", 16, 61.5),
        _tpu("tpu-v4", 32, 275),
        _tpu("tpu-v5e", 16, 197),
        _tpu("tpu-v5p", 95, 459),
        _tpu("tpu-v6e", 32, 918),
        _gpu("t4", 16, 0, 8.1),
        _gpu("v100", 16, 0, 15.7),
        _gpu("l4", 24, 121, 60),
        _gpu("a100-40gb", 40, 312, 156),
        _gpu("a100", 80, 312, 156),
        _gpu("h100", 80, 989, 494),
        _gpu("h200", 141, 989, 494),
    )
}
NAMES = (*_DEVICES, CPU)


def native_bfloat16_of_cpu(cpuinfo: Path, environment: Mapping[str, str]) -> tuple[bool, str]:
    """Returns whether a CPU computes bfloat16 natively, and why, from Linux's /proc/cpuinfo.

    As in oneDNN, ONEDNN_MAX_CPU_ISA and DNNL_MAX_CPU_ISA in `environment` limit the instructions.
    """
    for name in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
        limit = environment.get(name, "DEFAULT").upper()
        if not any(part in limit for part in _ONEDNN_SETS):
            return False, f"{name}={limit}"
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    flags = next((line for line in lines if line.startswith("flags")), "")
    found = [flag for flag in _CPU_FLAGS if flag in flags.split()]
    return bool(found), f"CPU with {found[0]}" if found else "CPU without bfloat16 instructions"


def find_device(name: str) -> Device:
    """Returns the device called `name`, one of NAMES; for CPU, this machine, which is measured."""
    if name == CPU:
        return _this_machine()
    if name not in _DEVICES:
        raise InputError(f"no device '{name}'", remedy=f"use one of {', '.join(NAMES)}")
    return _DEVICES[name]


def _this_machine() -> Device:
    """Returns this machine's CPU, whose products of float32 matrices NumPy times."""
    matrix = np.random.default_rng(0).random((_WIDTH, _WIDTH), np.float32)
    seconds = []
    for _ in range(_TURNS):
        start = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - start)
    peak = 2 * _WIDTH**3 / min(seconds)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    peaks = {"float32": peak}
    if native_bfloat16_of_cpu(Path("/proc/cpuinfo"), os.environ)[0]:
        peaks["bfloat16"] = _TIMES_AS_FAST * peak
    return Device(CPU, memory, peaks, runtime=0.8 * _GB, efficiency=0.8)
