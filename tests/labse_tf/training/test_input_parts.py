"""Batches made of parts, of which each of several workers reads its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import forked
import numpy as np
import pytest
import tensorflow as tf
from runs import lines
from text_files import write_lines
from tiny_text import sentences_of

from labse_tf.data.streams import WHOLE, Part
from labse_tf.errors import InputError
from labse_tf.training.distribution import distribute

WORKER = Path(__file__).with_name("parts_worker.py")
PARTS = 4
SETTINGS = {
    "encoder.num_layers": 1,
    "encoder.dropout": 0.0,
    # So that sentences lie apart: else Adam divides rounding by rounding.
    "encoder.initializer_range": 0.25,
    "pretrain.stage_steps": "[1]",
    "train.bucket_lengths": "[16,32]",
    "train.batch_size": 8,
    "train.input_parts": PARTS,
    "train.steps": 6,
    "train.loop.log_interval": 1,
    "train.loop.checkpoint_interval": 3,
    "languages": "[de,th]",
}


def part_of(part=WHOLE):
    """Batches of 6 rows in all: each part has the numbers of its own rows, of another length."""
    rows = 6 // part.of
    first = part.index * rows
    length = 2 + part.index
    numbers = np.arange(first, first + rows, dtype=np.int32)
    batch = {
        "ids": np.broadcast_to(numbers[:, None] + 1, [rows, length]).copy(),
        "keys": numbers,
    }
    return tf.data.Dataset.from_tensors(batch)


def test_parts_are_joined_in_order_and_padded():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    (batch,) = distribute(strategy, part_of, 6, parts=3)
    np.testing.assert_array_equal(batch["keys"], np.arange(6))
    expected = [[1, 1, 0, 0], [2, 2, 0, 0], [3, 3, 3, 0], [4, 4, 4, 0], [5] * 4, [6] * 4]
    np.testing.assert_array_equal(batch["ids"], expected)
    (whole,) = distribute(strategy, part_of, 6)
    assert whole["ids"].shape == (6, 2)
    assert part_of(Part(0, 3)).element_spec["ids"].shape == (2, 2)


def test_what_cannot_be_shared_is_refused():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with pytest.raises(InputError, match="a batch of 6 cannot be made of 4 equal parts"):
        distribute(strategy, part_of, 6, parts=4)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Four files of German, as many as there are parts; one of Thai."""
    folder = tmp_path_factory.mktemp("corpus")
    for language, files in (("de", PARTS), ("th", 1)):
        rows = list(zip(sentences_of("en"), sentences_of(language), strict=True))
        for number in range(files):
            (folder / f"part{number}").mkdir(exist_ok=True)
            lines = ["\t".join(row) for row in rows[number::files]]
            write_lines(folder / f"part{number}" / f"{language}.tsv", lines)
    return folder


def losses(run_dir):
    return [line["loss"] for line in lines(run_dir, "loss")]


@pytest.mark.slow
def test_four_workers_read_a_quarter_each_and_train_as_one(tmp_path, corpus, config_file):
    sets = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    command = ["train", str(config_file), *sets, f"--set=train.bitext=[{corpus}]", "--run-dir"]
    workers = forked.worker_environments(PARTS)
    jobs = [("one", {}), *((f"worker_{index}", one) for index, one in enumerate(workers))]
    forked.finish(
        [
            forked.Process(
                WORKER,
                tmp_path / f"{name}.json",
                *command,
                tmp_path / name.split("_")[0],
                env={**os.environ, **environment},
            )
            for name, environment in jobs
        ]
    )
    read = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name, _ in jobs}
    thai = str(corpus / "part0" / "th.tsv")
    quarters = [str(corpus / f"part{number}" / "de.tsv") for number in range(PARTS)]
    assert sorted(set(read["one"])) == sorted([thai, *quarters])
    for number, quarter in enumerate(quarters):
        assert read[f"worker_{number}"] == sorted([thai, quarter])
    assert losses(tmp_path / "worker") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)
    assert len(losses(tmp_path / "one")) == 6
