"""Runs of `labse train` and its siblings in this process, and what they leave."""

from __future__ import annotations

import json
import shutil

import numpy as np
import tensorflow as tf

from labse_tf.cli.main import main
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import open_existing
from labse_tf.training.validation import RunEmbedder

# One layer, for runs that need no more.
SHALLOW = ("encoder.num_layers=1", "pretrain.stage_steps=[1]")


def arguments(command, config_file, run_dir, *sets, init=None):
    options = ["--init", str(init)] if init else []
    sets = [f"--set={one}" for one in sets]
    return [command, str(config_file), "--run-dir", str(run_dir), *options, *sets]


def labse_run(command, config_file, run_dir, *sets, init=None):
    """Runs the command; returns its exit status."""
    return main(arguments(command, config_file, run_dir, *sets, init=init))


def lines(run_dir, kind=None):
    """The lines of metrics.jsonl, those with the key `kind`."""
    found = map(json.loads, (run_dir / "metrics.jsonl").read_text("utf-8").splitlines())
    return [line for line in found if kind is None or kind in line]


def held_out(run_dir, task):
    """Step -> what was measured in a task."""
    return {line["step"]: line["held_out"][task] for line in lines(run_dir, "held_out")}


def weights(checkpoint, *parts):
    """The variables of a checkpoint by name, of some parts or all; without Python's counters."""
    reader = tf.train.load_checkpoint(str(checkpoint))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.endswith("VARIABLE_VALUE")
        and "save_counter" not in name
        and (not parts or name.split("/")[0] in parts and "OPTIMIZER" not in name)
    }


def assert_same_weights(found, expected, *parts, least=20, atol=0.0):
    found, expected = weights(found, *parts), weights(expected, *parts)
    assert set(found) == set(expected) and len(expected) >= least
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=atol, err_msg=name)


def cut_short(run_dir, copy, *steps, stage=""):
    """A copy of a run without the checkpoints of these steps, as a killed process leaves it."""
    shutil.copytree(run_dir, copy)
    for step in steps:
        for file in (copy / "checkpoints" / stage).glob(f"ckpt-{step}.*"):
            file.unlink()
    return copy


def embedder_of(path):
    run_dir = open_existing(path)
    return RunEmbedder(load_encoder(run_dir), load_tokenizer(run_dir), sequence_length=64)
