"""Fine-tuning on inference: the classifier's features and loss, and the runs of `train-nli`."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
import trainers
from text_files import write_lines
from tiny_encoder import TINY_ENCODER, packed

from export.source import open_source
from labse_tf.cli.main import main
from labse_tf.evaluation.texts import InferencePairs
from labse_tf.model.encoder import build_encoder
from labse_tf.systems.nli.train import (
    Inference,
    InferenceEvaluator,
    build_classifier,
    pair_vectors,
)
from labse_tf.training.runs.checkpoints import latest_checkpoint, load_encoder
from labse_tf.training.runs.run_dir import open_existing


def test_pair_vectors_by_hand():
    u, v = np.array([[0.6, 0.8]], np.float32), np.array([[1.0, 0.0]], np.float32)
    root = math.sqrt(2)
    expected = [[0.6, 0.8, 1.0, 0.0, 0.4, 0.8, 0.6 * root, 0.0]]
    np.testing.assert_allclose(pair_vectors(u, v), root * np.array(expected), rtol=1e-6)


def batch():
    return {
        "premise": packed([[2, 9, 3, 0], [2, 12, 7, 3], [2, 21, 3, 0]]),
        "hypothesis": packed([[2, 8, 3, 0], [2, 5, 6, 3], [2, 9, 3, 0]]),
        "label": tf.constant([0, 1, 2]),
    }


def make_trainer(*, train_encoder):
    tf_keras.utils.set_random_seed(3)
    encoder = build_encoder(TINY_ENCODER, replayable=True)
    classifier = build_classifier(3, 8)
    objective = Inference(encoder=encoder, classifier=classifier, train_encoder=train_encoder)
    trainer = trainers.make_trainer(objective, batch(), tf_keras.optimizers.SGD(0.05))
    return trainer, encoder, classifier


@pytest.mark.parametrize("train_encoder", [True, False])
def test_the_first_loss_is_that_of_numpy_and_what_is_trained_moves(train_encoder):
    trainer, encoder, classifier = make_trainer(train_encoder=train_encoder)
    u, v = (
        encoder(batch()[side])["pooled_output"].numpy().astype(np.float64)
        for side in ("premise", "hypothesis")
    )
    u, v = (math.sqrt(8) * one / np.linalg.norm(one, axis=1, keepdims=True) for one in (u, v))
    kernel, bias = classifier.get_weights()
    logits = np.concatenate([u, v, np.abs(u - v), u * v], axis=1) @ kernel + bias
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(3), [0, 1, 2]]
    variables = (*encoder.variables, *classifier.variables)
    before = [variable.numpy() for variable in variables]
    means = trainer.train(tf.constant(1))
    assert float(means["loss"]) == pytest.approx(losses.mean(), rel=1e-5)
    assert float(means["accuracy"]) == pytest.approx(np.mean(logits.argmax(1) == [0, 1, 2]))
    assert float(trainer.train(tf.constant(10))["loss"]) < losses.mean()
    after = [variable.numpy() for variable in variables]
    moved = [np.abs(one - other).max() > 1e-6 for one, other in zip(before, after, strict=True)]
    assert all(moved[-2:]) and any(moved[:-2]) == train_encoder


class Fixed:
    """An encoder with a vector for each text."""

    dim = 2

    def encode(self, texts):
        return np.array([[1.0, 0.0] if "A" in text else [0.0, 1.0] for text in texts], np.float32)


def test_accuracy_by_language_and_across():
    texts = {
        "de": [("A", "A"), ("A", "B"), ("B", "B"), ("B", "A")],
        "ru": [("A", "A"), ("B", "B"), ("B", "B"), ("B", "B")],
    }
    labels = ["same", "other", "same", "other"]
    classifier = build_classifier(2, 2)
    # "same" if |u - v| is 0: the fifth and sixth inputs.
    kernel = np.zeros((8, 2), np.float32)
    kernel[4:6, 0] = 1.0
    classifier.set_weights([kernel, np.array([0.0, 0.5], np.float32)])
    evaluator = InferenceEvaluator(
        [InferencePairs(texts, labels)], ["other", "same"], Fixed(), classifier
    )
    found = evaluator.evaluate(None)["inference"]
    # German: all right. Russian pairs are all alike: 2 of 4. Premise de, hypothesis ru: A-A same,
    # A-B other, B-B same, B-B same but labelled other. Premise ru, hypothesis de: A-A, B-B, B-B,
    # B-A: the second is labelled other.
    assert found["by_language"] == {
        "de": {"accuracy": 1.0, "pairs": 4, "crossed": 0.75},
        "ru": {"accuracy": 0.5, "pairs": 4, "crossed": 0.75},
    }
    assert found["accuracy"] == 0.75 and found["crossed"] == 0.75 and found["pairs"] == 8


PAIRS = {
    "de": "Der Hund schläft.\tEin Tier ruht.\tentailment\nEs regnet.\tEs schneit.\tneutral\n",
    "ru": "Собака спит.\tЖивотное отдыхает.\tentailment\nИдёт дождь.\tИдёт снег.\tneutral\n",
    "th": "สุนัขนอนหลับ\tสัตว์กำลังพัก\tentailment\nฝนตก\tหิมะตก\tneutral\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nli")
    for language, text in PAIRS.items():
        (folder / f"train.{language}.tsv").write_text(text, "utf-8")
    return folder


SETS = ("nli.steps=4", "nli.batch_size=4", "nli.sequence_length=16", "nli.dev_interval=2")
SETS += ("nli.loop.log_interval=1", "nli.loop.checkpoint_interval=1")
SETS += ("nli.optimizer.warmup_steps=0",)


@pytest.fixture
def train(config_file, trained_run, folder):
    def run(run_dir, *sets, init=True):
        sets = (*SETS, f"nli.corpora=[{folder}]", f"nli.dev=[{folder}]", *sets)
        options = [f"--set={one}" for one in sets]
        options += ["--init", str(trained_run)] if init else []
        return main(["train-nli", str(config_file), "--run-dir", str(run_dir), *options])

    return run


def test_a_run_measures_itself_and_its_encoder_is_exported(train, trained_run, tmp_path):
    run = tmp_path / "run"
    assert train(run) == 0
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    measured = [line["held_out"]["inference"] for line in lines if "held_out" in line]
    assert [set(one["by_language"]) for one in measured] == [{"de", "ru", "th"}] * 2
    path = latest_checkpoint(open_existing(run))
    parts = {name.split("/")[0] for name, _ in tf.train.list_variables(path)}
    assert {"encoder", "classifier"} <= parts
    trained, before = (load_encoder(open_existing(path)) for path in (run, trained_run))
    moved = []
    variables = (open_source(run).encoder.variables, trained.variables, before.variables)
    for one, other, start in zip(*variables, strict=True):
        np.testing.assert_array_equal(one, other)
        moved.append(np.abs(one - start).max() > 0)
    assert any(moved)


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (None, "there is no encoder to fine-tune"),
        ("nli.corpora=[]", "'nli.corpora' is empty"),
        ("nli.sequence_length=4096", "'nli.sequence_length' is 4096"),
        ("nli.corpora=[one/de.tsv]", "have the label"),
        ("nli.dev=[other/de.tsv]", "'maybe'"),
    ],
)
def test_refusals(train, tmp_path, monkeypatch, capfd, sets, message):
    monkeypatch.chdir(tmp_path)
    for name, label in (("one", "entailment"), ("other", "maybe")):
        (tmp_path / name).mkdir()
        write_lines(tmp_path / name / "de.tsv", [f"a\tb\t{label}", "c\td\tentailment"])
    assert train(tmp_path / "run", *([sets] if sets else []), init=bool(sets)) == 2
    assert message in capfd.readouterr().err
