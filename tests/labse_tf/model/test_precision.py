"""What `compute.precision: auto` chooses, and the warning where bfloat16 is emulated."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import tensorflow as tf

from labse_tf.config import ComputeConfig, EncoderConfig
from labse_tf.config.cpu import native_bfloat16_of_cpu
from labse_tf.model import precision as precision_module
from labse_tf.model.encoder import build_encoder

# As /proc/cpuinfo has them: Haswell, Cascade Lake, Cooper Lake, Zen 4, Sapphire Rapids.
HASWELL = "fma avx f16c avx2 bmi2"
CASCADE_LAKE = f"{HASWELL} avx512f avx512bw avx512_vnni"
COOPER_LAKE = f"{CASCADE_LAKE} avx512_bf16"
ZEN_4 = f"{HASWELL} avx512f avx512_bf16 avx512_vbmi2"
SAPPHIRE_RAPIDS = f"{COOPER_LAKE} amx_bf16 amx_tile amx_int8"


@pytest.fixture(autouse=True)
def asked_anew():
    precision_module._chosen.cache_clear()
    yield
    precision_module._chosen.cache_clear()


def cpuinfo(folder, flags):
    path = folder / "cpuinfo"
    core = f"processor\t: 0\nmodel name\t: x\nbugs\t: avx512_bf16_bug\nflags\t\t: {flags}\n\n"
    path.write_text(core * 2, "utf-8")
    return path


@pytest.mark.parametrize(
    "flags, environment, expected",
    [
        (HASWELL, {}, False),
        (CASCADE_LAKE, {}, False),
        (COOPER_LAKE, {}, True),
        (ZEN_4, {}, True),
        (SAPPHIRE_RAPIDS, {}, True),
        (ZEN_4, {"ONEDNN_MAX_CPU_ISA": "AVX2"}, False),
        (ZEN_4, {"ONEDNN_MAX_CPU_ISA": "avx512_core_vnni"}, False),
        (ZEN_4, {"DNNL_MAX_CPU_ISA": "AVX512_CORE"}, False),
        (ZEN_4, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}, True),
        (ZEN_4, {"ONEDNN_MAX_CPU_ISA": "DEFAULT"}, True),
        (HASWELL, {"ONEDNN_MAX_CPU_ISA": "ALL"}, False),
    ],
)
def test_which_cpus_compute_bfloat16(tmp_path, flags, environment, expected):
    assert native_bfloat16_of_cpu(cpuinfo(tmp_path, flags), environment)[0] is expected


def test_an_unknown_system_computes_in_float32(tmp_path):
    assert native_bfloat16_of_cpu(tmp_path / "missing", {})[0] is False


def built(precision):
    sizes = {"vocab_size": 9, "hidden_size": 4, "num_attention_heads": 2, "intermediate_size": 8}
    config = EncoderConfig(num_layers=1, max_positions=8, **sizes)
    encoder = build_encoder(config, compute=ComputeConfig(precision=precision))
    return encoder.transformer_layers[0].compute_dtype


def test_auto_takes_what_this_machine_does(caplog):
    native, reason = native_bfloat16_of_cpu(Path("/proc/cpuinfo"), {})
    if tf.config.get_visible_devices("GPU"):
        pytest.skip("a GPU decides")
    with caplog.at_level(logging.INFO, "labse"):
        assert built("auto") == built("auto") == ("bfloat16" if native else "float32")
    assert [reason in line for line in caplog.messages] == [True]


def test_auto_leaves_emulated_bfloat16_alone(monkeypatch):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")
    assert built("auto") == "float32"


def test_emulated_bfloat16_is_warned_of_once(monkeypatch, caplog):
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI")
    with caplog.at_level(logging.WARNING, "labse"):
        assert built("bfloat16") == built("bfloat16") == "bfloat16"
    (line,) = caplog.messages
    assert "emulated here (ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI)" in line


def test_without_settings_it_is_float32():
    """Exports, imports and examples build encoders without settings."""
    config = EncoderConfig(
        vocab_size=9, hidden_size=4, num_attention_heads=2, intermediate_size=8, max_positions=8,
        num_layers=1,
    )  # fmt: skip
    assert build_encoder(config).transformer_layers[0].compute_dtype == "float32"
