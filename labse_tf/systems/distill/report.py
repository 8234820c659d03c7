"""Compares a student with its teacher: retrieval accuracy, size and speed."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

import labse_tf
from labse_tf.data.dev_pairs import read_dev_pairs
from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.evaluation.bitext import accuracies, all_cosines
from labse_tf.systems.distill.config import DistillRun
from labse_tf.training.run_embedder import RunEmbedder
from labse_tf.training.runs.checkpoints import load_encoder, load_tokenizer
from labse_tf.training.runs.run_dir import RunDir

_TIMED = 1000  # Sentences.


def compare(run_dir: RunDir) -> dict[str, dict[str, float]]:
    """Measures a student and its teacher on the run's dev pairs.

    Returns:
      For `teacher` and `student`: `dim`, `weights`, `sentences_per_second` on this machine, and
      `accuracy`, averaged over both directions and over languages.

    Raises:
      InputError: if the run has no dev pairs.
    """
    config = run_dir.read_config(DistillRun)
    pools = [
        [[side.decode("utf-8") for side in pair] for pair in pool]
        for pool in read_dev_pairs(config.train, config.languages).values()
    ]
    teacher = labse_tf.load(config.distill.teacher)
    network = load_encoder(run_dir)
    length = config.train.bucket_lengths[-1]
    student = RunEmbedder(network, load_tokenizer(run_dir), sequence_length=length)
    weights = {"teacher": teacher.count_weights(), "student": network.count_params()}
    return {
        name: {"dim": model.dim, "weights": weights[name], **_measure(model, pools)}
        for name, model in (("teacher", teacher), ("student", student))
    }


def _measure(model: Encoder, pools: Sequence[Sequence[Sequence[str]]]) -> dict[str, float]:
    # Many languages share English sentences; each is embedded once.
    vectors = TextVectors(model, (text for pool in pools for pair in pool for text in pair))
    found = []
    for pool in pools:
        english, foreign = (vectors[[pair[side] for pair in pool]] for side in (0, 1))
        found += accuracies(all_cosines(foreign, english)).values()
    # By now every shape has been traced.
    timed = vectors.texts[:_TIMED]
    start = time.perf_counter()
    model.encode(timed)
    seconds = time.perf_counter() - start
    return {"sentences_per_second": len(timed) / seconds, "accuracy": float(np.mean(found))}


def format_table(measured: dict[str, dict[str, float]]) -> str:
    """Returns the result of `compare` as plain text."""
    rows = [f"{'':10}{'dim':>6}{'weights':>16}{'sentences/s':>14}{'accuracy %':>12}"]
    rows += [
        f"{name:10}{model['dim']:>6}{model['weights']:>16,}"
        f"{model['sentences_per_second']:>14,.0f}{100 * model['accuracy']:>12.1f}"
        for name, model in measured.items()
    ]
    return "\n".join(rows)
