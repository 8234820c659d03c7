"""Which strategy and chief there are, what replicas gather, and how weights are saved."""

from __future__ import annotations

import importlib.util
import json

import pytest
import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.training import distribution
from labse_tf.training.distribution import (
    checkpoint_options,
    create_strategy,
    cross_replica_concat,
    distribute,
    is_chief,
)

WORKERS = {"worker": ["a:1", "b:1"]}
WITH_CHIEF = {"chief": ["c:1"], "worker": ["a:1"]}


def test_the_chief(monkeypatch):
    for cluster, type_, index, chief in (
        (WORKERS, "worker", 0, True),
        (WORKERS, "worker", 1, False),
        (WITH_CHIEF, "chief", 0, True),
        (WITH_CHIEF, "worker", 0, False),
    ):
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


def test_what_auto_means(monkeypatch):
    for library, config, tpu, gpus, expected in (
        (None, False, "", 0, "one_device"),
        (None, False, "", 2, "mirrored"),
        ("found", False, "", 2, "tpu"),
        ("found", True, "", 0, "multi_worker"),
        (None, True, "name", 2, "tpu"),
    ):
        monkeypatch.delenv("TF_CONFIG", raising=False)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, found=library: found)
        if config:
            monkeypatch.setenv("TF_CONFIG", "{}")
        assert distribution._choose(tpu, gpus) == expected


def test_an_uneven_batch_is_refused_and_gathered_rows_have_a_known_shape_as_a_tpu_needs():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    with pytest.raises(InputError, match="a batch of 7 cannot be split evenly over 2 replicas"):
        distribute(strategy, lambda: tf.data.Dataset.range(9).batch(7), 7)
    shapes = []

    @tf.function
    def step():
        strategy.run(lambda: shapes.append(cross_replica_concat(tf.ones([3, 4])).shape))

    step.get_concrete_function()  # Traced only.
    assert shapes == [(6, 4)] * 2


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
