"""Describes the machine of a measurement: its processor, and the instructions that matter most."""

from __future__ import annotations

import os
import platform
from pathlib import Path

# Linux's names for float32 in wide registers, bfloat16 products and bfloat16 tile products.
_DECISIVE = ("avx2", "avx512_bf16", "amx_bf16")
_CPUINFO = Path("/proc/cpuinfo")
# Variables that keep a library from using available instructions: oneDNN's, MKL's, PyTorch's.
_LIMITS = ("ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY")


def describe() -> str:
    """Returns one line: processor, its decisive instructions, limits, cores and load.

    The cores are those that this process may use.
    """
    cpuinfo = _CPUINFO.read_text("utf-8") if _CPUINFO.exists() else ""
    limits = [f"{name}={os.environ[name]}" for name in _LIMITS if name in os.environ]
    cores = len(os.sched_getaffinity(0))
    parts = [describe_processor(cpuinfo), *limits, f"{cores} cores, load {os.getloadavg()[0]:.1f}"]
    return "; ".join(parts)


def describe_processor(cpuinfo: str) -> str:
    """Returns the processor's name and features, from the text of Linux's /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    model = fields.get("model name") or platform.processor() or platform.machine()
    if "flags" not in fields:
        return f"{model}, features unknown"
    flags = fields["flags"].split()
    return ", ".join([model, *(f"{'' if f in flags else 'no '}{f}" for f in _DECISIVE)])
