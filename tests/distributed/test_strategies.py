"""`labse train` gives the same weights under every strategy that this machine can run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

ROOT = Path(__file__).resolve().parents[2]


def start(config_file, run_dir, *arguments, **environment):
    command = [sys.executable, "-m", "labse_tf.cli.main", "train", str(config_file)]
    return subprocess.Popen(
        [*command, "--run-dir", str(run_dir), *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(*processes):
    try:
        for process in processes:
            output, _ = process.communicate(timeout=280)
            assert process.returncode == 0, output[-3000:]
    finally:
        for process in processes:
            process.kill()


def weights(run_dir):
    """The encoder's weights in the last checkpoint, by their names there."""
    checkpoint = tf.train.latest_checkpoint(run_dir / "checkpoints")
    names = [name for name, _ in tf.train.list_variables(checkpoint) if name.startswith("encoder/")]
    wanted = [name for name in names if "OPTIMIZER" not in name and "ATTRIBUTES" in name]
    assert len(wanted) > 20
    reader = tf.train.load_checkpoint(checkpoint)
    return {name: reader.get_tensor(name) for name in wanted}


@pytest.fixture(scope="module")
def on_one_device(tmp_path_factory, config_file):
    run_dir = tmp_path_factory.mktemp("one") / "run"
    finish(start(config_file, run_dir, "--strategy", "one_device"))
    return weights(run_dir)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory, config_file):
    run_dir = tmp_path_factory.mktemp("untrained") / "run"
    finish(start(config_file, run_dir, "--strategy", "one_device", "--set", "train.steps=0"))
    return weights(run_dir)


def assert_same(found, expected, untrained):
    """The runs differ by less than 1 % of the way that training went.

    Not element by element: Adam divides by the gradient's size, so where that is nearly 0, rounding
    decides where an element goes. `test_replicas.py` compares the gradients themselves.
    """

    def distance(one, other):
        return np.sqrt(sum(np.sum((one[name] - other[name]) ** 2) for name in expected))

    assert set(found) == set(expected)
    assert distance(found, expected) < 0.01 * distance(expected, untrained)


def test_two_logical_cpus(tmp_path, config_file, on_one_device, untrained):
    arguments = ("--strategy", "mirrored", "--logical-cpus", "2")
    finish(start(config_file, tmp_path / "run", *arguments))
    assert_same(weights(tmp_path / "run"), on_one_device, untrained)


def test_two_workers_share_a_run_dir_and_resume(tmp_path, config_file, on_one_device, untrained):
    def train(*arguments):
        with (
            socket.create_server(("127.0.0.1", 0)) as one,
            socket.create_server(("127.0.0.1", 0)) as two,
        ):
            addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in (one, two)]
        finish(
            *(
                start(
                    config_file,
                    tmp_path / "run",
                    "--strategy",
                    "multi_worker",
                    *arguments,
                    TF_CONFIG=json.dumps(
                        {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}
                    ),
                )
                for i in range(2)
            )
        )

    train()
    assert_same(weights(tmp_path / "run"), on_one_device, untrained)
    metrics = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in metrics] == [1, 2, 3, 4]
    # Back to the checkpoint of step 3: both workers go on from there, together.
    for file in (tmp_path / "run" / "checkpoints").glob("ckpt-4.*"):
        file.unlink()
    state = tmp_path / "run" / "checkpoints" / "checkpoint"
    state.write_text('model_checkpoint_path: "ckpt-3"\nall_model_checkpoint_paths: "ckpt-3"\n')
    train()
    assert_same(weights(tmp_path / "run"), on_one_device, untrained)
    metrics = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in metrics] == [1, 2, 3, 4]
