"""Dual-encoder training with the whole global batch as negatives (LaBSE, equations 1 to 4)."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import tensorflow as tf
import tf_keras

from labse_tf.config import Config, TrainConfig
from labse_tf.config.shares import check_chunks, check_even, check_parts
from labse_tf.data.pairs import pair_batches
from labse_tf.data.streams import WHOLE, Part
from labse_tf.model.encoder import build_encoder
from labse_tf.training.dual_encoder_trainer import DualEncoderTrainer
from labse_tf.training.joint_trainer import JointTrainer, joint_batches
from labse_tf.training.loop.fit import Stage, fit
from labse_tf.training.masked_model import add_heads, masked_batches
from labse_tf.training.runs.checkpoints import load_subwords, load_tokenizer
from labse_tf.training.runs.run_dir import Origin, RunDir
from labse_tf.training.start import start_from
from labse_tf.training.validation.validate import validation_of


def train(
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    *,
    init: Origin | None = None,
) -> None:
    """Trains the dual encoder, from the weights of `init` or from scratch, or resumes.

    An `init` with fewer layers is stacked: each of its layers initialises several of the encoder's.
    With `train.steps` 0 the run contains the initial encoder.

    Raises:
      InputError: if a replica's batch cannot be cut into chunks of `chunk_size`, or the replicas
        cannot share a batch of masked sentences evenly.
    """
    settings = config.train
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope():
        tf_keras.utils.set_random_seed(config.seed)
        subwords = load_subwords(run_dir)
        encoder = build_encoder(
            config.encoder, compute=config.compute, replayable=True, subwords=subwords
        )
        model = add_heads(encoder, config) if settings.joint else None
        if init is not None:
            options = {"model": model, "subwords": subwords}
            start_from(init, encoder, config, run_dir, strategy, **options)

    settings = on_strategy(settings, strategy)
    if model is not None:
        batch_size, replicas = config.pretrain.batch_size, strategy.num_replicas_in_sync
        check_even(batch_size, replicas)
        check_parts(batch_size, settings.input_parts)
        check_chunks(batch_size // replicas, config.pretrain.chunk_size)

    pairs = pair_batches(settings, tokenizer, languages=config.languages, seed=config.seed)

    def masked(step: int, part: Part = WHOLE) -> tf.data.Dataset:
        # In another order than any stage of pre-training.
        stage = len(config.pretrain.stage_steps)
        return masked_batches(config, tokenizer, stage=stage, step=step, part=part)

    if model is None:
        task = functools.partial(DualEncoderTrainer, encoder=encoder, settings=settings)
    else:
        task = functools.partial(
            JointTrainer,
            model=model,
            settings=settings,
            sampled_softmax=config.pretrain.sampled_softmax,
            masked_chunk_size=config.pretrain.chunk_size,
        )
    fit(
        stage_of(settings, "train the dual encoder", run_dir.checkpoints),
        trainer=task,
        batches=pairs if model is None else functools.partial(joint_batches, masked, pairs),
        model={"encoder": encoder} if model is None else model.parts,
        variables=encoder.trainable_variables if model is None else model.variables,
        run_dir=run_dir,
        strategy=strategy,
        validation=validation_of(
            settings,
            languages=config.languages,
            strategy=strategy,
            encoder=encoder,
            tokenizer=tokenizer,
        ),
    )


def stage_of(settings: TrainConfig, description: str, checkpoints: Path) -> Stage:
    """Returns the single stage that `settings` describe."""
    return Stage(
        description=description,
        steps=settings.steps,
        batch_size=settings.batch_size,
        input_parts=settings.input_parts,
        optimizer=settings.optimizer,
        loop=settings.loop,
        checkpoints=checkpoints,
    )


def on_strategy(settings: TrainConfig, strategy: tf.distribute.Strategy) -> TrainConfig:
    """Returns the settings adapted to this strategy.

    Raises:
      InputError: if a replica's batch cannot be cut into chunks of `chunk_size`.
    """
    local_batch = settings.batch_size // strategy.num_replicas_in_sync
    check_chunks(local_batch, settings.chunk_size)
    if isinstance(strategy, tf.distribute.TPUStrategy):
        # A TPU compiles each shape separately, so all batches use the longest bucket.
        return dataclasses.replace(settings, bucket_lengths=settings.bucket_lengths[-1:])
    return settings
