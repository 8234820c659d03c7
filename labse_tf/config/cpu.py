"""What the CPU computes natively."""

from __future__ import annotations

from pathlib import Path

# Linux's names for the instructions that multiply bfloat16 matrices; parts of oneDNN's names for
# the instruction sets that have them.
_CPU_FLAGS = ("avx512_bf16", "amx_bf16")
_ONEDNN_SETS = ("BF16", "FP16", "AMX", "AVX10", "ALL", "DEFAULT")


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
