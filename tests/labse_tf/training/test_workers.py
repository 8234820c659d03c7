"""`labse train` on several workers: batches in parts, a killed worker, dev pairs."""

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
from runs import SHALLOW, arguments, labse_run, lines, weights
from text_files import write_lines
from tiny_text import sentences_of

from labse_tf.data.streams import WHOLE, Part
from labse_tf.errors import InputError
from labse_tf.training.distribution import distribute

WORKER = Path(__file__).with_name("cluster_worker.py")
WORKERS = PARTS = 2
STEPS, NEVER = 9, 99


def part_of(part=WHOLE):
    """Batches of 6 rows in all: each part has the numbers of its own rows, of another length."""
    rows = 6 // part.of
    numbers = np.arange(part.index * rows, (part.index + 1) * rows, dtype=np.int32)
    ids = np.broadcast_to(numbers[:, None] + 1, [rows, 2 + part.index]).copy()
    return tf.data.Dataset.from_tensors({"ids": ids, "keys": numbers})


def test_parts_are_joined_in_order_and_padded():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    (batch,) = distribute(strategy, part_of, 6, parts=3)
    np.testing.assert_array_equal(batch["keys"], np.arange(6))
    expected = [[1, 1, 0, 0], [2, 2, 0, 0], [3, 3, 3, 0], [4, 4, 4, 0], [5] * 4, [6] * 4]
    np.testing.assert_array_equal(batch["ids"], expected)
    (whole,) = distribute(strategy, part_of, 6)
    assert whole["ids"].shape == (6, 2)
    assert part_of(Part(0, 3)).element_spec["ids"].shape == (2, 2)
    with pytest.raises(InputError, match="a batch of 6 cannot be made of 4 equal parts"):
        distribute(strategy, part_of, 6, parts=4)


@pytest.fixture
def corpus(tmp_path):
    """German in as many files as there are parts; Thai in one."""
    folder = tmp_path / "corpus"
    for language, files in (("de", PARTS), ("th", 1)):
        rows = list(map("\t".join, zip(sentences_of("en"), sentences_of(language), strict=True)))
        for number in range(files):
            (folder / f"part{number}").mkdir(parents=True, exist_ok=True)
            write_lines(folder / f"part{number}" / f"{language}.tsv", rows[number::files])
    return folder


@pytest.fixture
def sets(corpus, bitext_dir):
    """35 dev pairs of a language: the rows of a batch do not divide over the replicas.

    And several steps between two lines of the log, with batches of different lengths.
    """
    train = {"bitext": f"[{corpus}]", "bucket_lengths": "[16,32]", "input_parts": PARTS}
    train |= {"dev": f"[{bitext_dir}]", "dev_size": 35, "dev_interval": 3, "steps": STEPS}
    train |= {"loop.log_interval": 3, "loop.checkpoint_interval": 3}
    # So that sentences lie apart: else Adam divides rounding by rounding.
    encoder = (*SHALLOW, "encoder.initializer_range=0.25", "languages=[de,th]")
    return [*encoder, *(f"train.{key}={value}" for key, value in train.items())]


def by_step(run_dir, kind):
    found = lines(run_dir, kind)
    assert len({line["step"] for line in found}) == len(found)
    return {line["step"]: line[kind] for line in found}


def assert_same_run(run_dir, expected_run_dir, untrained_run_dir):
    """The weights differ by less than 1 % of the way that training went, in all.

    Where a gradient is nearly 0, rounding decides where Adam moves an element. Accuracies are the
    same but for a few sentences that have two nearest neighbours almost as near.
    """
    found, expected, untrained = (
        weights(tf.train.latest_checkpoint(run / "checkpoints"), "encoder")
        for run in (run_dir, expected_run_dir, untrained_run_dir)
    )

    def distance(one, other):
        return np.sqrt(sum(np.sum((one[name] - other[name]) ** 2) for name in expected))

    assert set(found) == set(expected) and len(found) > 20
    assert distance(found, expected) < 0.01 * distance(expected, untrained)
    losses, others = (by_step(path, "loss") for path in (run_dir, expected_run_dir))
    assert losses == pytest.approx(others, rel=1e-5) and list(losses) == [3, 6, 9]
    found, expected = (by_step(path, "held_out") for path in (run_dir, expected_run_dir))
    assert list(found) == list(expected) == [3, 6, 9]
    for step, measured in expected.items():
        assert found[step]["retrieval"]["pairs"] == measured["retrieval"]["pairs"] == 35 * 2
        for language, accuracies in measured["retrieval"]["by_language"].items():
            other = found[step]["retrieval"]["by_language"][language]["accuracy"]
            assert other == pytest.approx(accuracies["accuracy"], abs=0.1)
    best = json.loads((run_dir / "checkpoints" / "best" / "best.json").read_text())
    accuracy = found[best["step"]]["retrieval"]["accuracy"]
    assert best["accuracy"] == pytest.approx(accuracy, abs=0.05)
    assert (run_dir / "checkpoints" / "best" / f"ckpt-{best['step']}.index").exists()


@pytest.mark.slow
def test_the_chief_is_killed_and_all_go_on(tmp_path, config_file, corpus, sets):
    """Each worker is as on a machine of its own: they share the store alone, and read a part."""
    assert labse_run("train", config_file, tmp_path / "one", *sets) == 0
    start = ("train.steps=0", "train.dev=[]")
    assert labse_run("train", config_file, tmp_path / "untrained", *sets, *start) == 0
    with stores.gcs() as store:
        port = int(os.environ["STORAGE_EMULATOR_HOST"].rpartition(":")[2])
        with stores.proxy_to(port, tmp_path) as google:
            command = arguments("train", config_file, f"{store.url}/run", *sets)
            command += ["--strategy", "multi_worker"]

            def start_all(chief_halts_at):
                for index, cluster in enumerate(forked.worker_environments(WORKERS)):
                    halts_at = NEVER if index else chief_halts_at
                    words = (WORKER, halts_at, tmp_path / f"read_{index}.json", *command)
                    own = {"LABSE_STAGING": str(tmp_path / f"machine {index}")}
                    yield forked.Process(*words, env={**os.environ, **google, **cluster, **own})

            chief, other = start_all(3)
            end = time.monotonic() + 400
            while "run/checkpoints/ckpt-3.index" not in store.names():
                ended = [one for one in (chief, other) if one.poll() is not None]
                assert time.monotonic() < end and not ended, ended and ended[0].communicate()
                time.sleep(0.05)
            chief.kill()
            _, output = other.communicate(timeout=400)
            assert other.returncode == 2, output[-3000:]
            assert "another worker has ended or cannot be reached" in output
            assert f"run/checkpoints/ckpt-{STEPS}.index" not in store.names()
            forked.finish(list(start_all(NEVER)))
            run_dir = tmp_path / "run"
            for name, content in store.content("run").items():
                (run_dir / name).parent.mkdir(parents=True, exist_ok=True)
                (run_dir / name).write_bytes(content)
    assert_same_run(run_dir, tmp_path / "one", tmp_path / "untrained")
    thai = str(corpus / "part0" / "th.tsv")
    for number in range(WORKERS):
        read = json.loads((tmp_path / f"read_{number}.json").read_text())
        own = [thai, str(corpus / f"part{number}" / "de.tsv")]
        assert [path for path in read if path.startswith(str(corpus))] == sorted(own)
