"""What machine a figure was measured on: its processor, and the instructions that decide most."""

from __future__ import annotations

import os
import platform
from pathlib import Path

# As Linux names them: float32 in wide registers, bfloat16 products, bfloat16 products of tiles.
_DECISIVE = ("avx2", "avx512_bf16", "amx_bf16")
_CPUINFO = Path("/proc/cpuinfo")


def describe() -> str:
    """Returns a line: processor, cores, which of the decisive instructions it has, load."""
    cpuinfo = _CPUINFO.read_text("utf-8") if _CPUINFO.exists() else ""
    return f"{describe_processor(cpuinfo)}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


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
