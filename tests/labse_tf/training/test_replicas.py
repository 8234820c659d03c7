"""Several replicas, on one machine or two, train exactly as one device with the whole batch."""

from __future__ import annotations

import os
from pathlib import Path

import forked
import numpy as np
import pytest

pytestmark = pytest.mark.slow

WORKER = Path(__file__).with_name("replica_worker.py")
# Each case on some of the replicas: a process takes seconds to build each.
CASES = {
    "1": (
        *("dual", "dual_local", "dual_clipped", "dual_nested", "mlm", "distill"),
        *("inference", "joint", "joint_chunked", "laser"),
    ),
    "2": (
        *("dual", "dual_local", "dual_nested", "mlm", "distill"),
        *("inference", "joint", "joint_chunked", "laser"),
    ),
    "4": ("dual",),
    "worker_0_of_2": ("dual", "dual_clipped", "mlm"),
    "worker_1_of_2": ("dual", "dual_clipped", "mlm"),
}
REPLICAS = {name: int(name[-1]) for name in CASES if name != "1"}
CLIP_NORM = 0.05
STEPS = 2


def start(*, mode, cases, out, **environment):
    return forked.Process(WORKER, mode, ",".join(cases), out, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What one device, 2 and 4 logical CPUs, and each of 2 workers made."""
    folder = tmp_path_factory.mktemp("replicas")
    runs = {name: {"mode": name} for name in ("1", "2", "4")}
    for index, environment in enumerate(forked.worker_environments(2)):
        runs[f"worker_{index}_of_2"] = {"mode": "workers", **environment}
    forked.finish(
        [start(cases=CASES[name], out=folder / f"{name}.npz", **run) for name, run in runs.items()]
    )
    return {name: dict(np.load(folder / f"{name}.npz")) for name in runs}


def facts_of(results, case):
    prefix = f"{case}/"
    # A student's accuracy is among the texts of its replica.
    other = (
        "source",
        "target",
        *(f"accuracy_{step}" for step in range(STEPS) if case == "distill"),
    )
    return {
        name.removeprefix(prefix): value
        for name, value in results.items()
        if name.startswith(prefix) and name.split("/")[1] not in other
    }


def assert_same(found, expected):
    assert set(found) == set(expected)
    assert sum(name.startswith("weight_") for name in expected) > 15
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def test_the_processes_had_the_replicas_they_should(made):
    found = {name: int(results["replicas"]) for name, results in made.items()}
    assert found == {"1": 1, **REPLICAS}


@pytest.mark.parametrize(
    "replicas, case",
    [(name, case) for name in REPLICAS for case in CASES[name] if case != "dual_local"],
)
def test_replicas_equal_one_device(made, replicas, case):
    """Loss, accuracy and gradient norm of both steps, and every weight afterwards."""
    assert_same(facts_of(made[replicas], case), facts_of(made["1"], case))


def test_chunks_and_layers_computed_again_change_nothing(made):
    assert_same(facts_of(made["1"], "joint_chunked"), facts_of(made["1"], "joint"))


def test_training_moved_the_weights_and_clipping_held_them_back(made):
    """Without this the comparisons above could compare nothing with nothing."""

    def weights(case):
        facts = facts_of(made["1"], case)
        return np.concatenate(
            [facts[name].ravel() for name in sorted(facts) if name.startswith("weight_")]
        )

    assert np.abs(weights("dual") - weights("dual_clipped")).max() > 1e-3
    facts = facts_of(made["1"], "dual_clipped")
    # The norm that is logged is that before clipping, and clipping was active.
    assert all(facts[f"gradient_norm_{step}"] > 2 * CLIP_NORM for step in range(STEPS))


def test_the_dual_loss_is_that_of_the_paper(made):
    """Equations 2 to 4 over the embeddings of the first global batch, duplicates left out."""
    source = made["1"]["dual/source"].astype(np.float64)
    target = made["1"]["dual/target"].astype(np.float64)
    similarities = source @ target.T
    logits = 10.0 * (similarities - 0.3 * np.eye(len(source)))
    for one, other in ((1, 9), (2, 3)):
        logits[one, other] = logits[other, one] = similarities[one, other] = -np.inf
        similarities[other, one] = -np.inf
    forward = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    backward = np.log(np.exp(logits).sum(axis=0)) - np.diag(logits)
    expected = forward.mean() + backward.mean()
    accuracy = np.mean(similarities.argmax(axis=1) == np.arange(len(source)))
    for results in made.values():
        np.testing.assert_allclose(results["dual/loss_0"], expected, rtol=1e-4)
        np.testing.assert_allclose(results["dual/accuracy_0"], accuracy, rtol=1e-6)


@pytest.mark.parametrize(
    "run, replicas", [(run, count) for run, count in REPLICAS.items() if "dual_local" in CASES[run]]
)
def test_local_negatives_are_those_of_the_replica(made, run, replicas):
    """The mean of the replicas' losses, each over its own rows; rows 2 and 3 share a target."""
    embeddings = [made["1"][f"dual/{side}"].astype(np.float64) for side in ("source", "target")]
    expected = 0.0
    for first in range(0, 12, 12 // replicas):
        rows = np.arange(first, first + 12 // replicas)
        source, target = (side[rows] for side in embeddings)
        logits = 10.0 * (source @ target.T - 0.3 * np.eye(len(rows)))
        same_target = (
            (rows[:, None] != rows) & np.isin(rows, [2, 3]) & np.isin(rows, [2, 3])[:, None]
        )
        logits[same_target] = -np.inf
        forward = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
        backward = np.log(np.exp(logits).sum(axis=0)) - np.diag(logits)
        expected += (forward + backward).sum() / 12
    np.testing.assert_allclose(made[run]["dual_local/loss_0"], expected, rtol=1e-4)


@pytest.mark.parametrize("run, replicas", REPLICAS.items())
def test_an_uneven_batch_is_refused(made, run, replicas):
    message = str(made[run]["refusal"])
    assert f"a batch of 7 cannot be split evenly over {replicas} replicas" in message
    assert f"a multiple of {replicas}" in message


def test_one_device_takes_any_batch(made):
    assert str(made["1"]["refusal"]) == ""
