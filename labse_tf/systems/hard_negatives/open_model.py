"""The model used for mining: a model dir, or the run of an averaging encoder."""

from __future__ import annotations

import os
from pathlib import Path

import tensorflow as tf

from labse_tf.embedding.embedder import Embedder
from labse_tf.embedding.light import SortingEncoder
from labse_tf.embedding.model_dir import ModelDir
from labse_tf.errors import InputError
from labse_tf.systems.hard_negatives.averaging_encoder import AveragingEncoder
from labse_tf.systems.hard_negatives.config import NegativesRun
from labse_tf.systems.hard_negatives.train import CHECKPOINTS
from labse_tf.training.run_embedder import RunEmbedder
from labse_tf.training.runs.checkpoints import load_tokenizer, newest_whole
from labse_tf.training.runs.run_dir import RunDir


def open_model(path: str | os.PathLike[str]) -> tuple[SortingEncoder, list[Path]]:
    """Returns an encoder and the files of its weights.

    Raises:
      InputError: if the folder is neither a model dir nor such a run.
    """
    run_dir = RunDir(Path(path))
    if not run_dir.config_file.is_file():
        model_dir = ModelDir.open(path)
        return Embedder(model_dir), sorted((model_dir.path / "encoder" / "variables").iterdir())
    checkpoint = newest_whole(run_dir.checkpoints / CHECKPOINTS)
    if checkpoint is None:
        raise InputError(
            "the run has no checkpoint of an averaging encoder",
            path=path,
            remedy="name the --run-dir of `labse mine-negatives`, or a model dir",
        )
    files = sorted(Path(checkpoint).parent.glob(f"{Path(checkpoint).name}.*"))
    return _open_run(run_dir, checkpoint), files


def _open_run(run_dir: RunDir, checkpoint: str) -> RunEmbedder:
    config = run_dir.read_config(NegativesRun)
    network = AveragingEncoder(config.negatives.encoder, vocab_size=config.encoder.vocab_size)
    restored = tf.train.Checkpoint(encoder=network).restore(checkpoint)
    restored.assert_existing_objects_matched().expect_partial()
    length = config.train.bucket_lengths[-1]
    return RunEmbedder(network, load_tokenizer(run_dir), sequence_length=length)
