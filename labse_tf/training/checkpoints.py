"""Finds and loads the encoder of a run."""

from __future__ import annotations

import dataclasses

import tensorflow as tf
from official.nlp.modeling import networks

from labse_tf.config import Config
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder
from labse_tf.training.run_dir import RunDir


def latest_checkpoint(run_dir: RunDir) -> str:
    """Returns the newest checkpoint of a training run, or of a pre-training run's last stage.

    Raises:
      InputError: if there is none, or pre-training has not reached its last stage.
    """
    found = tf.train.latest_checkpoint(run_dir.checkpoints)
    if found is None:
        last_stage = len(run_dir.config.pretrain.stage_steps)
        found = tf.train.latest_checkpoint(run_dir.checkpoints / f"stage_{last_stage}")
    if found is None:
        raise InputError(
            "the run has no finished checkpoint of the whole encoder",
            path=run_dir.path,
            remedy="let it train on",
        )
    return found


def restore_encoder(run_dir: RunDir, encoder: networks.BertEncoderV2) -> None:
    """Loads the run's newest weights into `encoder`, all of them or fails."""
    checkpoint = tf.train.Checkpoint(encoder=encoder)
    checkpoint.restore(latest_checkpoint(run_dir)).assert_existing_objects_matched()


def load_encoder(run_dir: RunDir, *, dropout: float | None = None) -> networks.BertEncoderV2:
    """Returns the run's encoder with its newest weights."""
    config: Config = run_dir.config
    settings = config.encoder
    if dropout is not None:
        settings = dataclasses.replace(settings, dropout=dropout)
    encoder = build_encoder(settings)
    restore_encoder(run_dir, encoder)
    return encoder
