"""Which process makes the run dir, and strategies that there cannot be."""

from __future__ import annotations

import json

import pytest

from labse_tf.errors import InputError
from labse_tf.training.distribution import create_strategy, is_chief

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
    # Each of these works by itself, whatever the environment says.
    assert is_chief("mirrored") is True


@pytest.mark.parametrize("config", [None, "{}"])
def test_one_process_is_the_chief(monkeypatch, config):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if config is not None:
        monkeypatch.setenv("TF_CONFIG", config)
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
