"""Several replicas, on one machine or two, train exactly as one device with the whole batch."""

from __future__ import annotations

import os
from pathlib import Path

import forked
import numpy as np
import pytest

WORKER = Path(__file__).with_name("replica_worker.py")
OTHERS = ("mlm", "dual_local", "dual_clipped", "distill", "inference", "joint", "laser")
ON_WORKERS = ("dual_clipped", "mlm")
CLIP_NORM = 0.05
STEPS = 2


def start(mode, cases, out, **environment):
    return forked.Process(WORKER, mode, ",".join(cases), out, env={**os.environ, **environment})


def read(path):
    """(replicas, case) -> name -> value."""
    found = {}
    for name, value in np.load(path).items():
        replicas, case, name = name.split("/", 2)
        found.setdefault((int(replicas), case), {})[name] = value
    return found


def on_two(tmp_path_factory, *cases):
    """The cases on one device and on 2 logical CPUs."""
    out = tmp_path_factory.mktemp("two") / "two.npz"
    forked.finish([start("2", cases, out)])
    return read(out)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    return on_two(tmp_path_factory, "dual")


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    return on_two(tmp_path_factory, *OTHERS)


def assert_same(found, expected, case):
    other = ["source", "target"]
    if case == "distill":  # A student's accuracy is among the texts of its replica.
        other += [f"accuracy_{step}" for step in range(STEPS)]
    found, expected = (
        {name: value for name, value in facts.items() if name not in other}
        for facts in (found, expected)
    )
    assert set(found) == set(expected)
    assert sum(name.startswith("weight_") for name in expected) > 15
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def test_two_replicas_equal_one_device(two):
    """Loss, accuracy and gradient norm of both steps, and every weight afterwards."""
    assert_same(two[2, "dual"], two[1, "dual"], "dual")


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in OTHERS if case != "dual_local"])
def test_two_replicas_and_their_chunks_equal_one_device(others, case):
    assert_same(others[2, case], others[1, case], case)


@pytest.mark.slow
def test_more_replicas_and_workers_equal_one_device(two, others, tmp_path):
    workers = forked.worker_environments(2)
    outs = [tmp_path / f"{index}.npz" for index in range(2)]
    jobs = zip(outs, workers, strict=True)
    jobs = [start("workers", ON_WORKERS, out, **environment) for out, environment in jobs]
    forked.finish([start("4", ["dual"], tmp_path / "four.npz"), *jobs])
    assert_same(read(tmp_path / "four.npz")[4, "dual"], two[1, "dual"], "dual")
    expected = {**two, **others}
    for out in outs:
        for case in ON_WORKERS:
            assert_same(read(out)[2, case], expected[1, case], case)


@pytest.mark.slow
def test_training_moved_the_weights_and_clipping_held_them_back(two, others):
    """Without this the comparisons above could compare nothing with nothing."""

    dual, clipped = two[1, "dual"], others[1, "dual_clipped"]
    weights = [name for name in dual if name.startswith("weight_")]
    assert max(np.abs(dual[name] - clipped[name]).max() for name in weights) > 1e-3
    # The norm that is logged is that before clipping, and clipping was active.
    assert all(clipped[f"gradient_norm_{step}"] > 2 * CLIP_NORM for step in range(STEPS))


def test_the_dual_loss_is_that_of_the_paper(two):
    """Equations 2 to 4 over the embeddings of the first global batch, duplicates left out."""
    source, target = (two[1, "dual"][side].astype(np.float64) for side in ("source", "target"))
    similarities = source @ target.T
    logits = 10.0 * (similarities - 0.3 * np.eye(len(source)))
    for one, other in ((1, 9), (2, 3)):
        logits[one, other] = logits[other, one] = similarities[one, other] = -np.inf
        similarities[other, one] = -np.inf
    accuracy = np.mean(similarities.argmax(axis=1) == np.arange(len(source)))
    for replicas in (1, 2):
        found = two[replicas, "dual"]
        np.testing.assert_allclose(found["loss_0"], both_directions(logits).mean(), rtol=1e-4)
        np.testing.assert_allclose(found["accuracy_0"], accuracy, rtol=1e-6)


def both_directions(logits):
    forward = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    return forward + np.log(np.exp(logits).sum(axis=0)) - np.diag(logits)


@pytest.mark.slow
def test_local_negatives_are_those_of_the_replica(others):
    """The mean of the replicas' losses, each over its own rows; rows 2 and 3 share a target."""
    facts = others[1, "dual_local"]
    embeddings = [facts[side].astype(np.float64) for side in ("source", "target")]
    expected = 0.0
    for rows in np.split(np.arange(12), 2):
        source, target = (side[rows] for side in embeddings)
        logits = 10.0 * (source @ target.T - 0.3 * np.eye(len(rows)))
        shares_target = np.isin(rows, [2, 3])
        logits[(rows[:, None] != rows) & shares_target & shares_target[:, None]] = -np.inf
        expected += both_directions(logits).sum() / 12
    np.testing.assert_allclose(others[2, "dual_local"]["loss_0"], expected, rtol=1e-4)
