"""Fine-tuning on inference: the classifier's features and loss, and the runs of `train-nli`."""

from __future__ import annotations

import math

import numpy as np
import pytest
import runs
import tensorflow as tf
import tf_keras
import trainers
from text_files import write_lines
from tiny_encoder import TINY_ENCODER, packed

from export.source import open_source
from labse_tf.evaluation.texts import InferencePairs
from labse_tf.model.encoder import build_encoder
from labse_tf.systems.nli import train as nli
from labse_tf.systems.nli.train import InferenceEvaluator, build_classifier, pair_vectors
from labse_tf.training.runs.checkpoints import load_encoder
from labse_tf.training.runs.run_dir import open_existing


def test_pair_vectors_by_hand():
    u, v = np.array([[0.6, 0.8]], np.float32), np.array([[1.0, 0.0]], np.float32)
    root = math.sqrt(2)
    expected = [[0.6, 0.8, 1.0, 0.0, 0.4, 0.8, 0.6 * root, 0.0]]
    np.testing.assert_allclose(pair_vectors(u, v), root * np.array(expected), rtol=1e-6)


BATCH = {
    "premise": packed([[2, 9, 3, 0], [2, 12, 7, 3], [2, 21, 3, 0]]),
    "hypothesis": packed([[2, 8, 3, 0], [2, 5, 6, 3], [2, 9, 3, 0]]),
    "label": tf.constant([0, 1, 2]),
}


@pytest.mark.parametrize("train_encoder", [True, False])
def test_the_first_loss_is_that_of_numpy_and_what_is_trained_moves(train_encoder):
    tf_keras.utils.set_random_seed(3)
    encoder, classifier = build_encoder(TINY_ENCODER, replayable=True), build_classifier(3, 8)
    objective = nli.Inference(encoder, classifier, train_encoder=train_encoder)
    trainer = trainers.make_trainer(objective, BATCH, tf_keras.optimizers.SGD(0.05))
    sides = (BATCH["premise"], BATCH["hypothesis"])
    u, v = (encoder(side)["pooled_output"].numpy().astype(np.float64) for side in sides)
    u, v = (math.sqrt(8) * one / np.linalg.norm(one, axis=1, keepdims=True) for one in (u, v))
    kernel, bias = classifier.get_weights()
    logits = np.concatenate([u, v, np.abs(u - v), u * v], axis=1) @ kernel + bias
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(3), [0, 1, 2]]
    before = [*encoder.get_weights(), *classifier.get_weights()]
    means = trainer.train(tf.constant(1))
    assert float(means["loss"]) == pytest.approx(losses.mean(), rel=1e-5)
    assert float(means["accuracy"]) == pytest.approx(np.mean(logits.argmax(1) == [0, 1, 2]))
    assert float(trainer.train(tf.constant(3))["loss"]) < losses.mean()
    after = [*encoder.get_weights(), *classifier.get_weights()]
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
    pairs = [InferencePairs(texts, labels)]
    evaluator = InferenceEvaluator(pairs, ["other", "same"], Fixed(), classifier)
    found = evaluator.evaluate(None)["inference"]
    # German: all right. Russian pairs are all alike: 2 of 4. Of premise de and hypothesis ru, B-B,
    # the last, is labelled other; of premise ru and hypothesis de the second.
    assert found["by_language"] == {
        "de": {"accuracy": 1.0, "pairs": 4, "crossed": 0.75},
        "ru": {"accuracy": 0.5, "pairs": 4, "crossed": 0.75},
    }
    assert found["accuracy"] == 0.75 and found["crossed"] == 0.75 and found["pairs"] == 8


SETS = ("nli.steps=2", "nli.batch_size=2", "nli.sequence_length=16", "nli.dev_interval=1")
SETS += ("nli.loop.log_interval=1", "nli.loop.checkpoint_interval=1")
SETS += ("nli.optimizer.warmup_steps=0", "encoder.num_layers=0")


@pytest.fixture
def train(config_file, static_run, inference_dir):
    def run(run_dir, *sets, init=static_run):
        sets = (*SETS, f"nli.corpora=[{inference_dir}]", f"nli.dev=[{inference_dir}]", *sets)
        return runs.labse_run("train-nli", config_file, run_dir, *sets, init=init)

    return run


def test_a_run_measures_itself_and_its_encoder_is_exported(train, static_run, tmp_path):
    run = tmp_path / "run"
    assert train(run) == 0
    measured = runs.held_out(run, "inference").values()
    assert [set(one["by_language"]) for one in measured] == [{"de", "en"}] * 2
    assert runs.weights(run / "checkpoints" / "ckpt-2", "classifier")
    trained, before = (load_encoder(open_existing(path)) for path in (run, static_run))
    exported = open_source(run).encoder.get_weights()
    for one, other in zip(exported, trained.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    pairs = zip(exported, before.get_weights(), strict=True)
    assert any(np.abs(one - other).max() > 0 for one, other in pairs)


def test_refusals(train, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name, label in (("one", "entailment"), ("other", "maybe")):
        write_lines(tmp_path / name / "de.tsv", [f"a\tb\t{label}", "c\td\tentailment"])
    for change, message in (
        ("", "there is no encoder to fine-tune"),
        ("nli.corpora=[]", "'nli.corpora' is empty"),
        ("nli.sequence_length=4096", "'nli.sequence_length' is 4096"),
        ("nli.corpora=[one/de.tsv]", "have the label"),
        ("nli.dev=[other/de.tsv]", "'maybe'"),
    ):
        options = {} if change else {"init": None}
        assert train(tmp_path / "run", *filter(None, [change]), **options) == 2
        assert message in capfd.readouterr().err
