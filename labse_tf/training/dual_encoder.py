"""Dual-encoder training with the whole global batch as negatives (LaBSE, equations 1 to 4)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf
import tf_keras

from labse_tf.config import Config, TrainConfig
from labse_tf.data.dev_pairs import read_dev_pairs
from labse_tf.data.pairs import NO_KEY, pair_batches
from labse_tf.errors import InputError
from labse_tf.losses import additive_margin_softmax, duplicates
from labse_tf.model.dropout import dropout_generators
from labse_tf.model.dual_encoder import embed
from labse_tf.model.encoder import build_encoder
from labse_tf.model.stacking import stack
from labse_tf.tokenization.wordpiece import Tokenizer
from labse_tf.training.distribution import cross_replica_concat
from labse_tf.training.loop import resumable
from labse_tf.training.loop.trainer import Trainer, distribute
from labse_tf.training.optimizer.adamw import build_optimizer
from labse_tf.training.optimizer.gradient_cache import cached_gradients
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.initial_weights import restore, write_report
from labse_tf.training.runs.run_dir import Origin, RunDir
from labse_tf.training.validation.course import Validation
from labse_tf.training.validation.dev import validate_on


class DualEncoderTrainer(Trainer):
    """Additive margin softmax of both directions over the gathered global batch."""

    def __init__(self, *, encoder, settings: TrainConfig, **kwargs) -> None:
        """Prepares to train.

        Args:
          encoder: from `build_encoder`, `replayable` if it has dropout.
          settings: of the loss, and `chunk_size`.
          **kwargs: as for `Trainer`.
        """
        self._dropout = dropout_generators(encoder)
        super().__init__(variables=encoder.trainable_variables, generators=self._dropout, **kwargs)
        self._encoder = encoder
        self._settings = settings

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        return [(self._encoder.get_embedding_table(), all_inputs(batch)["input_word_ids"])]

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        return self._loss_of(self._embed(all_inputs(batch)), batch)

    def replica_gradients(self, batch) -> tuple[tf.Tensor, tf.Tensor, list]:
        if not self._settings.chunk_size:
            return super().replica_gradients(batch)
        return cached_gradients(
            self._embed,
            all_inputs(batch),
            lambda embeddings: self._loss_of(embeddings, batch),
            self._variables,
            chunk_rows=(2 + self._settings.hard_negatives) * self._settings.chunk_size,
            generators=self._dropout,
            tables=self.rows_read(batch) if self._lazy_embeddings else (),
        )

    def _embed(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return embed(self._encoder, inputs, training=True)

    def _loss_of(self, embeddings: tf.Tensor, batch) -> tuple[tf.Tensor, tf.Tensor]:
        local_batch = tf.shape(batch["keys"])[0]
        source, target, negatives = tf.split(
            embeddings, [local_batch, local_batch, self._settings.hard_negatives * local_batch]
        )
        sources, targets = self._candidates(source), self._candidates(target)
        context = tf.distribute.get_replica_context()
        offset = 0
        if self._settings.global_negatives:
            offset = tf.cast(context.replica_id_in_sync_group, tf.int32) * local_batch
        ignored = tf.zeros([local_batch, tf.shape(sources)[0]], tf.bool)
        if self._settings.mask_duplicates:
            all_keys = tf.transpose(self._candidates(batch["keys"]))
            ignored = duplicates(tf.transpose(batch["keys"]), all_keys, positive_offset=offset)
        settings = {
            "positive_offset": offset,
            "margin": self._settings.margin,
            "scale": self._settings.scale,
        }
        losses = additive_margin_softmax(target, sources, ignored=ignored, **settings)
        if self._settings.hard_negatives:
            # All of the global batch, for every source; appendix B.
            targets = tf.concat([targets, self._candidates(negatives)], axis=0)
            ignored = tf.concat([ignored, self._ignored_negatives(batch)], axis=1)
        losses += additive_margin_softmax(source, targets, ignored=ignored, **settings)
        similarities = tf.where(ignored, -1.0, tf.matmul(source, targets, transpose_b=True))
        nearest = tf.argmax(similarities, 1, output_type=tf.int32)
        hits = tf.cast(nearest == offset + tf.range(local_batch), tf.float32)
        divisor = tf.cast(context.num_replicas_in_sync * local_batch, tf.float32)
        return tf.reduce_sum(losses) / divisor, tf.reduce_sum(hits) / divisor

    def _candidates(self, rows: tf.Tensor) -> tf.Tensor:
        return cross_replica_concat(rows) if self._settings.global_negatives else rows

    def _ignored_negatives(self, batch) -> tf.Tensor:
        """Returns `[batch, n]`: which of all hard negatives are none, or the query's own target."""
        keys = tf.reshape(self._candidates(batch["negative_keys"]), [1, -1])
        return (keys == NO_KEY) | (keys == batch["keys"][:, 1:])


def all_inputs(batch) -> dict[str, tf.Tensor]:
    """Returns sources, targets and hard negatives one below the other, for one encoder call."""
    parts = [batch["source"], batch["target"]]
    if "negatives" in batch:
        flat = {
            name: tf.reshape(ids, [-1, tf.shape(ids)[-1]])
            for name, ids in batch["negatives"].items()
        }
        parts.append(flat)
    return tf.nest.map_structure(lambda *rows: tf.concat(rows, axis=0), *parts)


def train(
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    *,
    init: Origin | None = None,
) -> None:
    """Trains the dual encoder, from the weights of `init` or from scratch; resumes.

    An `init` of fewer layers is stacked: each of its layers starts several of the encoder's.
    With `train.steps` 0 the run holds the encoder as it starts.

    Raises:
      InputError: if a replica's batch cannot be cut into chunks of `train.chunk_size`.
    """
    settings = config.train
    dev_pairs = read_dev_pairs(config) if settings.dev else {}
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = build_encoder(config.encoder, compute=config.compute, replayable=True)
        if init is not None:
            _start_from(init, encoder, config, run_dir, strategy)
        optimizer = build_optimizer(settings.optimizer, steps=settings.steps)
        optimizer.build(encoder.trainable_variables)

    fit(
        functools.partial(DualEncoderTrainer, settings=settings),
        "train the dual encoder",
        encoder=encoder,
        tokenizer=tokenizer,
        optimizer=optimizer,
        config=config,
        run_dir=run_dir,
        strategy=strategy,
        checkpoint_dir=run_dir.checkpoints,
        validation=validate_on(dev_pairs, settings, strategy, encoder, tokenizer),
    )


def _check_chunks(settings: TrainConfig, strategy: tf.distribute.Strategy) -> None:
    local_batch = settings.batch_size // strategy.num_replicas_in_sync
    if settings.chunk_size and local_batch % settings.chunk_size:
        raise InputError(
            f"a replica's {local_batch} pairs do not divide into chunks of {settings.chunk_size}",
            remedy=f"set 'chunk_size' to a divisor of {local_batch}",
        )


def _start_from(init: Origin, encoder, config: Config, run_dir: RunDir, strategy) -> None:
    """Gives `encoder` the weights of `init`, stacked if that has fewer layers."""
    shallow = init.encoder.num_layers < config.encoder.num_layers
    source = encoder
    if shallow:
        source = build_encoder(config.encoder, num_layers=init.encoder.num_layers)
    fates = restore(init, source)
    if strategy.extended.should_checkpoint:
        write_report(fates, init, source.variables, run_dir)
    if shallow:
        stack(source, encoder)


def fit(
    trainer: Callable[..., Trainer],
    description: str,
    *,
    batches: Callable[..., tf.data.Dataset] = pair_batches,
    encoder,
    tokenizer: Tokenizer,
    optimizer,
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    checkpoint_dir: Path,
    validation: Validation | None = None,
) -> None:
    """Trains `encoder` as `config.train` says, or goes on where the run was stopped.

    Args:
      trainer: called with what `Trainer` takes and `encoder`, its `variables` left out.
      description: shown with the progress.
      batches: called as `pair_batches`.
      encoder: to train; made, like the optimiser, under the strategy.
      tokenizer: of its vocabulary.
      optimizer: built on the encoder's variables.
      config: of the run.
      run_dir: for metrics and TensorBoard.
      strategy: that everything was made under.
      checkpoint_dir: a folder of these checkpoints alone.
      validation: as for `resumable.run`.

    Raises:
      InputError: if a replica's batch cannot be cut into chunks of `chunk_size`; what
        `resumable.run` raises.
    """
    settings = config.train
    _check_chunks(settings, strategy)
    if isinstance(strategy, tf.distribute.TPUStrategy):
        # A TPU compiles each shape anew: all batches are of the longest bucket.
        settings = dataclasses.replace(settings, bucket_lengths=settings.bucket_lengths[-1:])
        config = dataclasses.replace(config, train=settings)

    def make_trainer(steps_done: int) -> Trainer:
        dataset = distribute(
            strategy,
            lambda: batches(config, tokenizer, skip=steps_done),
            settings.batch_size,
        )
        return trainer(
            encoder=encoder,
            strategy=strategy,
            optimizer=optimizer,
            clip_norm=settings.optimizer.clip_norm,
            lazy_embeddings=settings.optimizer.lazy_embeddings,
            dataset=dataset,
        )

    resumable.run(
        description=description,
        strategy=strategy,
        make_trainer=make_trainer,
        optimizer=optimizer,
        checkpoint=tf.train.Checkpoint(encoder=encoder, optimizer=optimizer),
        checkpoint_dir=str(checkpoint_dir),
        run_dir=run_dir,
        steps=settings.steps,
        loop=settings.loop,
        validation=validation,
    )
