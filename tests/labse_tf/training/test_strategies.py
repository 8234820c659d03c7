"""`labse train` gives the same weights under every strategy that this machine can run.

And the same accuracies on dev pairs, which the replicas embed a part each.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import forked
import numpy as np
import pytest
import stores
import tensorflow as tf
from runs import lines, weights

from labse_tf.cli.main import main

pytestmark = pytest.mark.slow

SHALLOW = (
    "--set=encoder.num_layers=1",
    # So that sentences lie apart: else Adam divides rounding by rounding.
    "--set=encoder.initializer_range=0.25",
    "--set=pretrain.stage_steps=[1]",
    "--set=train.bucket_lengths=[16,32]",
)


HALTING = Path(__file__).with_name("halting_worker.py")


def start(config_file, run_dir, *arguments, program=forked.LABSE, **environment):
    command = ("train", config_file, "--run-dir", run_dir, *arguments)
    return forked.Process(*program, *command, env={**os.environ, **environment})


def encoder_of(run_dir):
    """The encoder's weights in the last checkpoint, by their names there."""
    found = weights(tf.train.latest_checkpoint(run_dir / "checkpoints"), "encoder")
    assert len(found) > 20
    return found


def by_step(run_dir, kind):
    found = lines(run_dir, kind)
    assert len({line["step"] for line in found}) == len(found)
    return {line["step"]: line[kind] for line in found}


@pytest.fixture(scope="module")
def dev(bitext_dir):
    """35 pairs of a language: the rows of a batch do not divide over the replicas.

    And several steps between two lines of the log, with batches of different lengths.
    """
    settings = {"dev": f"[{bitext_dir}]", "dev_size": 35, "dev_interval": 3}
    settings |= {"loop.log_interval": 3, "loop.checkpoint_interval": 3, "steps": 12}
    return [*SHALLOW, *(f"--set=train.{key}={value}" for key, value in settings.items())]


def train_on_one_device(config_file, run_dir, *arguments):
    command = ["train", str(config_file), "--run-dir", str(run_dir)]
    assert main([*command, "--strategy", "one_device", *arguments]) == 0


@pytest.fixture(scope="module")
def run_on_one_device(tmp_path_factory, config_file, dev):
    run_dir = tmp_path_factory.mktemp("one") / "run"
    train_on_one_device(config_file, run_dir, *dev)
    return run_dir


@pytest.fixture(scope="module")
def on_one_device(run_on_one_device):
    return encoder_of(run_on_one_device)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory, config_file):
    run_dir = tmp_path_factory.mktemp("untrained") / "run"
    train_on_one_device(config_file, run_dir, *SHALLOW, "--set=train.steps=0")
    return encoder_of(run_dir)


def assert_same(found, expected, untrained):
    """The runs differ by less than 1 % of the way that training went.

    Not element by element: Adam divides by the gradient's size, so where that is nearly 0, rounding
    decides where an element goes. `test_replicas.py` compares the gradients themselves.
    """

    def distance(one, other):
        return np.sqrt(sum(np.sum((one[name] - other[name]) ** 2) for name in expected))

    assert set(found) == set(expected)
    assert distance(found, expected) < 0.01 * distance(expected, untrained)


def assert_same_accuracies(run_dir, expected_run_dir):
    """But for a few sentences that have two nearest neighbours almost as near."""
    found, expected = (by_step(path, "held_out") for path in (run_dir, expected_run_dir))
    assert list(found) == list(expected) == [3, 6, 9, 12]
    for step, measured in expected.items():
        assert found[step]["retrieval"]["pairs"] == measured["retrieval"]["pairs"] == 35 * 6
        for language, accuracies in measured["retrieval"]["by_language"].items():
            other = found[step]["retrieval"]["by_language"][language]["accuracy"]
            assert other == pytest.approx(accuracies["accuracy"], abs=0.1)
    best = json.loads((run_dir / "checkpoints" / "best" / "best.json").read_text())
    accuracy = found[best["step"]]["retrieval"]["accuracy"]
    assert best["accuracy"] == pytest.approx(accuracy, abs=0.05)
    assert (run_dir / "checkpoints" / "best" / f"ckpt-{best['step']}.index").exists()


def test_two_logical_cpus(tmp_path, config_file, dev, run_on_one_device, on_one_device, untrained):
    arguments = ("--strategy", "mirrored", "--logical-cpus", "2")
    forked.finish([start(config_file, tmp_path / "run", *arguments, *dev)])
    assert_same(encoder_of(tmp_path / "run"), on_one_device, untrained)
    assert_same_accuracies(tmp_path / "run", run_on_one_device)


WORKERS = 4


@pytest.fixture
def google(tmp_path):
    """A GCS that all processes share, and the environment in which TensorFlow reaches it."""
    with stores.gcs() as store:
        port = int(os.environ["STORAGE_EMULATOR_HOST"].rpartition(":")[2])
        with stores.proxy_to(port, tmp_path) as environment:
            yield store, environment


def test_a_worker_and_then_the_chief_are_killed_and_all_go_on(
    tmp_path, google, config_file, dev, run_on_one_device, on_one_device, untrained
):
    """Each worker is as on a machine of its own: they share nothing but the store."""
    store, environment = google

    def start_all(step=None, victim=None):
        return [
            start(
                *(config_file, f"{store.url}/run", *dev, "--strategy", "multi_worker"),
                program=(HALTING, str(step)) if index == victim else forked.LABSE,
                **(environment | cluster | {"LABSE_STAGING": str(tmp_path / f"machine {index}")}),
            )
            for index, cluster in enumerate(forked.worker_environments(WORKERS))
        ]

    for step, victim in ((3, 2), (6, 0)):
        workers = start_all(step, victim)
        end = time.monotonic() + 400
        while f"run/checkpoints/ckpt-{step}.index" not in store.names():
            ended = [worker for worker in workers if worker.poll() is not None]
            assert time.monotonic() < end and not ended, ended and ended[0].communicate()
            time.sleep(0.05)
        workers[victim].kill()
        for index, worker in enumerate(workers):
            _, output = worker.communicate(timeout=400)
            if index != victim:
                assert worker.returncode == 2, output[-3000:]
                assert "another worker has ended or cannot be reached" in output
        assert "run/checkpoints/ckpt-12.index" not in store.names()
    forked.finish(start_all())
    run_dir = tmp_path / "run"
    for name, content in store.content("run").items():
        (run_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (run_dir / name).write_bytes(content)
    assert_same(encoder_of(run_dir), on_one_device, untrained)
    assert list(by_step(run_dir, "loss")) == [3, 6, 9, 12]
    assert_same_accuracies(run_dir, run_on_one_device)
