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


def test_features_are_those_of_the_flags():
    said = machine.describe_processor(CPUINFO)
    assert said == "A Processor @ 2.0GHz, avx2, no avx512_bf16, amx_bf16"


def test_what_is_not_known_is_not_denied():
    assert machine.describe_processor("").endswith(", features unknown")


def test_this_machine():
    assert f"; {len(os.sched_getaffinity(0))} cores, load " in machine.describe()


def test_what_is_forbidden_is_said(monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert "; ONEDNN_MAX_CPU_ISA=AVX2; " in machine.describe()
