"""Which process makes the run dir, and strategies that there cannot be."""

from __future__ import annotations

import importlib.util
import json

import pytest
import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.training import distribution
from labse_tf.training.distribution import (
    checkpoint_options,
    count_tpu_chips,
    create_strategy,
    is_chief,
)

WORKERS = {"worker": ["a:1", "b:1"]}
WITH_CHIEF = {"chief": ["c:1"], "worker": ["a:1"]}


@pytest.mark.parametrize(
    "cluster, type_, index, chief",
    [
        (WORKERS, "worker", 0, True),
        (WORKERS, "worker", 1, False),
        (WITH_CHIEF, "chief", 0, True),
        (WITH_CHIEF, "worker", 0, False),
    ],
)
def test_the_chief(monkeypatch, cluster, type_, index, chief):
    task = {"type": type_, "index": index}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    assert is_chief("auto") is is_chief("multi_worker") is chief
    # Works by itself, whatever the environment says.
    assert is_chief("mirrored") is True
    monkeypatch.setenv("TF_CONFIG", "{}")
    assert is_chief("auto") is True
    monkeypatch.delenv("TF_CONFIG")
    assert is_chief("auto") is True


def test_strategies_that_there_cannot_be(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    for arguments, problem in (
        ({"name": "horovod"}, "no strategy 'horovod'"),
        ({"name": "one_device", "logical_cpus": 2}, "--logical-cpus does nothing"),
        ({"name": "multi_worker"}, "need TF_CONFIG"),
    ):
        with pytest.raises(InputError, match=problem):
            create_strategy(**arguments)


@pytest.fixture
def bus(tmp_path, monkeypatch):
    """A PCI bus with a network card of Google, a GPU and a device without ids; adds others."""
    monkeypatch.setattr(distribution, "_PCI_DEVICES", tmp_path)
    monkeypatch.delenv("TF_CONFIG", raising=False)

    def add(slot, vendor, device):
        (tmp_path / slot).mkdir()
        (tmp_path / slot / "vendor").write_text(f"{vendor}\n")
        (tmp_path / slot / "device").write_text(f"{device}\n")

    add("0000:00:04.0", "0x1ae0", "0x0042")
    add("0000:00:05.0", "0x10de", "0x0027")
    (tmp_path / "0000:00:06.0").mkdir()
    return add


def test_chips_of_a_tpu_are_counted(bus, monkeypatch, tmp_path):
    assert count_tpu_chips() == 0
    bus("0000:00:07.0", "0x1ae0", "0x0027")
    bus("0000:00:08.0", "0x1ae0", "0x0063")
    assert count_tpu_chips() == 2
    monkeypatch.setattr(distribution, "_PCI_DEVICES", tmp_path / "none")
    assert count_tpu_chips() == 0


@pytest.mark.parametrize(
    ("chips", "library", "config", "tpu", "gpus", "expected"),
    [
        (0, True, False, "", 0, "one_device"),
        (0, True, False, "", 2, "mirrored"),
        (4, True, False, "", 2, "tpu"),
        (4, False, False, "", 2, "mirrored"),
        (4, True, True, "", 0, "multi_worker"),
        (0, False, True, "name", 2, "tpu"),
    ],
)
def test_what_auto_means(bus, monkeypatch, caplog, chips, library, config, tpu, gpus, expected):
    for number in range(chips):
        bus(f"0000:01:0{number}.0", "0x1ae0", "0x005e")
    found = importlib.util.find_spec("json") if library else None
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
    if config:
        monkeypatch.setenv("TF_CONFIG", "{}")
    assert distribution._choose(tpu, gpus) == expected
    warned = "4 TPU chips, but no TensorFlow" in caplog.text
    assert warned == (chips > 0 and not library)


def test_a_pods_weights_are_saved_by_the_process_that_runs_the_command(monkeypatch, tmp_path):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    assert not checkpoint_options(strategy).experimental_io_device
    monkeypatch.setattr(tf.distribute, "TPUStrategy", tf.distribute.OneDeviceStrategy)
    options = checkpoint_options(strategy)
    assert options.experimental_io_device == "/job:localhost"
    variable = tf.Variable([1.0, 2.0])
    path = tf.train.Checkpoint(table=variable).write(str(tmp_path / "ckpt"), options)
    variable.assign([0.0, 0.0])
    tf.train.Checkpoint(table=variable).read(path, options).assert_consumed()
    assert variable.numpy().tolist() == [1.0, 2.0]
