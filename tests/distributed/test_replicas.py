"""Several replicas, on one machine or two, train exactly as one device with the whole batch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("replica_worker.py")
CASES = ("dual", "dual_clipped", "dual_adamw", "mlm", "mlm_clipped")
STEPS = 2


def start(mode, out, **environment):
    return subprocess.Popen(
        [sys.executable, str(WORKER), mode, str(out)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def finish(processes):
    try:
        for process in processes:
            output, _ = process.communicate(timeout=240)
            assert process.returncode == 0, output[-3000:]
    finally:
        for process in processes:
            process.kill()


@pytest.fixture(scope="module")
def on_replicas(tmp_path_factory):
    """What one device, 2 and 4 logical CPUs made; one process, since it has all the devices."""
    out = tmp_path_factory.mktemp("replicas") / "replicas.npz"
    finish([start("replicas", out)])
    return dict(np.load(out))


@pytest.fixture(scope="module")
def on_workers(tmp_path_factory):
    """What each of two worker processes made, which talk over 127.0.0.1."""
    folder = tmp_path_factory.mktemp("workers")
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    outs = [folder / f"worker_{index}.npz" for index in range(2)]
    processes = []
    for index, out in enumerate(outs):
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        processes.append(start("workers", out, TF_CONFIG=json.dumps(cluster)))
    finish(processes)
    return [dict(np.load(out)) for out in outs]


def facts_of(results, strategy, case):
    prefix = f"{strategy}/{case}/"
    return {
        name.removeprefix(prefix): value
        for name, value in results.items()
        if name.startswith(prefix) and name.split("/")[2] not in ("source", "target")
    }


def assert_same(found, expected):
    assert set(found) == set(expected)
    assert sum(name.startswith("weight_") for name in expected) > 20
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def test_the_worker_had_the_replicas_it_should(on_replicas):
    assert [int(on_replicas[f"{count}/replicas"]) for count in (1, 2, 4)] == [1, 2, 4]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("replicas", [2, 4])
def test_mirrored_equals_one_device(on_replicas, replicas, case):
    """Loss, accuracy and gradient norm of both steps, and every weight afterwards."""
    expected = facts_of(on_replicas, "1", case)
    assert_same(facts_of(on_replicas, str(replicas), case), expected)


@pytest.mark.parametrize("case", CASES)
def test_two_workers_equal_one_device(on_replicas, on_workers, case):
    expected = facts_of(on_replicas, "1", case)
    for results in on_workers:
        assert int(results["workers/replicas"]) == 2
        assert_same(facts_of(results, "workers", case), expected)


def test_training_moved_the_weights_and_clipping_held_them_back(on_replicas):
    """Without this the comparisons above could compare nothing with nothing."""

    def weights(case):
        facts = facts_of(on_replicas, "1", case)
        return np.concatenate(
            [facts[name].ravel() for name in sorted(facts) if name.startswith("weight_")]
        )

    for kind in ("dual", "mlm"):
        facts = facts_of(on_replicas, "1", f"{kind}_clipped")
        # The norm that is logged is that before clipping, and clipping was active.
        assert all(facts[f"gradient_norm_{step}"] > 0.2 for step in range(STEPS))
        assert np.abs(weights(kind) - weights(f"{kind}_clipped")).max() > 1e-3


def test_the_dual_loss_is_that_of_the_paper(on_replicas):
    """Equation 4 in NumPy over the embeddings of the first global batch."""
    source = on_replicas["1/dual/source"].astype(np.float64)
    target = on_replicas["1/dual/target"].astype(np.float64)
    similarities = source @ target.T
    logits = 10.0 * (similarities - 0.3 * np.eye(len(source)))
    forward = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    backward = np.log(np.exp(logits).sum(axis=0)) - np.diag(logits)
    expected = forward.mean() + backward.mean()
    accuracy = np.mean(similarities.argmax(axis=1) == np.arange(len(source)))
    for strategy in ("1", "2", "4"):
        np.testing.assert_allclose(on_replicas[f"{strategy}/dual/loss_0"], expected, rtol=1e-4)
        np.testing.assert_allclose(on_replicas[f"{strategy}/dual/accuracy_0"], accuracy, rtol=1e-6)


@pytest.mark.parametrize("replicas", [2, 4])
def test_an_uneven_batch_is_refused(on_replicas, replicas):
    message = str(on_replicas[f"{replicas}/refusal"])
    assert f"a batch of 7 does not divide over {replicas} replicas" in message
    assert f"a multiple of {replicas}" in message


def test_an_uneven_batch_is_refused_by_every_worker(on_workers):
    for results in on_workers:
        assert "does not divide over 2 replicas" in str(results["workers/refusal"])


def test_one_device_takes_any_batch(on_replicas):
    assert str(on_replicas["1/refusal"]) == ""
