"""Masked tokens and bitext retrieval in one step: the sum of both losses, and the runs with it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from runs import assert_same_weights, labse_run, lines, weights
from tiny_encoder import TINY_ENCODER, packed
from trainers import make_trainer

from labse_tf.config import OptimizerConfig, TrainConfig, load_config
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head, build_slots
from labse_tf.training.objectives import DualEncoder, Joint, MaskedTokens
from labse_tf.training.optimizer import build_optimizer
from labse_tf.training.runs.checkpoints import latest_checkpoint
from labse_tf.training.runs.run_dir import open_existing

RATE = 0.5
MASKED = {
    **packed([[2, 9, 4, 30, 3, 0], [2, 12, 4, 7, 21, 3]]),
    "neighbour": packed([[2, 8, 3, 0], [2, 5, 6, 3]]),
    "masked_positions": tf.constant([[2, 0], [2, 4]]),
    "masked_ids": tf.constant([[9, 0], [33, 21]]),
    "masked_weights": tf.constant([[1.0, 0.0], [1.0, 1.0]]),
}
# Of another size, and of tokens some of which no masked sentence has.
PAIRS = {
    "source": packed([[2, 10, 11, 3], [2, 13, 3, 0], [2, 14, 15, 3], [2, 16, 3, 0]]),
    "target": packed([[2, 17, 3, 0], [2, 18, 3, 0], [2, 9, 3, 0], [2, 19, 3, 0]]),
    "keys": tf.constant([[1, 5], [2, 6], [3, 7], [4, 8]]),
}


def masked_tokens(**options):
    tf_keras.utils.set_random_seed(3)
    encoder = build_encoder(TINY_ENCODER, replayable=True)
    heads = build_mlm_head(TINY_ENCODER, encoder), build_slots(3, TINY_ENCODER)
    return MaskedTokens(encoder, *heads, **options)


def step(objective, batch):
    """The metrics of a step, and what it adds to each variable: by SGD, -RATE * gradient."""
    before = [variable.numpy() for variable in objective.variables]
    trainer = make_trainer(objective, batch, tf_keras.optimizers.SGD(RATE))
    means = {name: float(value) for name, value in trainer.train(tf.constant(1)).items()}
    moved = zip(objective.variables, before, strict=True)
    return means, {variable.name: variable.numpy() - old for variable, old in moved}


@pytest.mark.parametrize(
    "samples, chunk",
    [(0, 0), (20, 2), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((0, 2), (20, 0)))],
)
def test_loss_and_gradient_are_the_weighted_sum(eagerly, samples, chunk):
    settings = TrainConfig(scale=5.0)
    masked, of_masked = step(masked_tokens(samples=samples), MASKED)
    pairs, of_pairs = step(DualEncoder(masked_tokens().parts["encoder"], settings), PAIRS)
    settings = dataclasses.replace(settings, chunk_size=chunk)
    one = masked_tokens(samples=samples)
    joint = Joint(one, DualEncoder(one.parts["encoder"], settings), weight=0.2)
    assert set(joint.parts) == {"encoder", "head", "slots"}  # All are in the checkpoint.
    both, of_both = step(joint, {"masked": MASKED, "pairs": PAIRS})
    assert both["loss"] == pytest.approx(masked["loss"] + 0.2 * pairs["loss"], rel=1e-5)
    assert both["masked_loss"] == pytest.approx(masked["loss"], rel=1e-6)
    assert both["masked_accuracy"] == masked["accuracy"]
    assert both["accuracy"] == pairs["accuracy"]
    assert pairs["loss"] > 1 and any(np.abs(moved).max() > 1e-3 for moved in of_pairs.values())
    for name, moved in of_masked.items():
        expected = moved + 0.2 * of_pairs.get(name, 0.0)
        np.testing.assert_allclose(of_both[name], expected, atol=2e-6, err_msg=name)


def test_lazy_updates_train_the_weights_of_dense_ones(eagerly):
    """Rows that no batch holds decay in both; others are read every second step."""
    other = {
        **PAIRS,
        "target": packed([[2, 20, 3, 0], [2, 21, 3, 0], [2, 22, 3, 0], [2, 10, 23, 3]]),
    }
    tables = []
    for lazy in (True, False):
        objective = DualEncoder(masked_tokens().parts["encoder"], TrainConfig())
        table = objective.parts["encoder"].get_embedding_table()
        start = table.numpy()
        settings = OptimizerConfig(learning_rate=0.01, warmup_steps=0)
        trainer = make_trainer(
            objective,
            optimizer=build_optimizer(settings, steps=8),
            clip_norm=1.0,
            lazy_embeddings=lazy,
        )
        trainer.train_loop_begin()
        for batch in (PAIRS, other) * 4:
            trainer._replica_step(batch)
        trainer.train_loop_end()
        tables.append(table.numpy())
    lazy, dense = tables
    assert np.linalg.norm(lazy - dense) < 0.01 * np.linalg.norm(dense - start)


@pytest.fixture(scope="module")
def run(config_file, neighbours_dir):
    """`labse pretrain` or `labse train` on both tasks."""

    def start(command, run_dir, *more, init=None):
        sets = {
            "pretrain.objective": "cmlm",
            "pretrain.neighbours": f"[{neighbours_dir}]",
            "pretrain.slots": 3,
            "pretrain.sequence_length": 24,
            "pretrain.batch_size": 6,
            "pretrain.stage_steps": "[0]",
            "encoder.num_layers": 1,
            "encoder.pooling": "mean",
            "train.steps": 2,
            "train.joint": str(command == "train").lower(),
        }
        sets = [f"{key}={value}" for key, value in sets.items()]
        return labse_run(command, config_file, run_dir, *sets, *more, init=init)

    return start


@pytest.fixture(scope="module")
def cmlm(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("cmlm") / "run"
    assert run("pretrain", path) == 0
    return path


def test_it_trains_and_logs_both(run, tmp_path):
    assert run("train", tmp_path / "run") == 0
    assert all({"masked_loss", "masked_accuracy"} <= set(line) for line in lines(tmp_path / "run"))


def test_it_begins_with_all_parts_of_a_pre_training_run(run, cmlm, tmp_path):
    assert run("train", tmp_path / "joint", "train.steps=0", init=cmlm) == 0
    found, expected = (
        latest_checkpoint(open_existing(path)) for path in (tmp_path / "joint", cmlm)
    )
    assert weights(found, "slots")
    assert_same_weights(found, expected, "encoder", "head", "slots")
    # Slots of another number are not taken.
    sets = ("train.steps=0", "pretrain.slots=5")
    assert run("train", tmp_path / "other", *sets, init=cmlm) == 0
    rows = (tmp_path / "other" / "init.tsv").read_text("utf-8").splitlines()
    fates = {row.split("\t")[1]: row.split("\t")[0] for row in rows[1:]}
    slots = [fate for name, fate in fates.items() if name.startswith("slots")]
    assert slots and set(slots) == {"fresh"}


def test_joint_training_needs_corpora_for_both_and_a_weight(run, tmp_path, capfd):
    assert run("train", tmp_path / "run", "pretrain.neighbours=[]") != 0
    assert "train.joint" in capfd.readouterr().err
    with pytest.raises(InputError, match="'train.bitext_weight' is 0"):
        load_config(None, ["train.bitext_weight=0"])
