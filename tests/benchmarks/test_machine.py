"""Figures are told with the instructions that decide them."""

import os

from benchmarks import machine

CPUINFO = """processor\t: 0
model name\t: A Processor @ 2.0GHz
flags\t\t: fpu avx avx2 avx512f amx_bf16

processor\t: 1
model name\t: A Processor @ 2.0GHz
flags\t\t: fpu avx
"""


def test_the_machine_and_what_limits_it(monkeypatch):
    said = machine.describe_processor(CPUINFO)
    assert said == "A Processor @ 2.0GHz, avx2, no avx512_bf16, amx_bf16"
    assert machine.describe_processor("").endswith(", features unknown")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    cores = f"; {len(os.sched_getaffinity(0))} cores, load "
    assert f"; ONEDNN_MAX_CPU_ISA=AVX2{cores}" in machine.describe()
