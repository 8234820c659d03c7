"""Dual-encoder training with the whole global batch as negatives (LaBSE, sections 2 and 2.1)."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.config import Config, TrainConfig
from labse_tf.data.dev_pairs import read_dev_pairs
from labse_tf.data.pairs import pair_batches
from labse_tf.distribution import cross_replica_concat
from labse_tf.errors import InputError
from labse_tf.losses import additive_margin_softmax, duplicates
from labse_tf.model.dual_encoder import embed
from labse_tf.model.encoder import build_encoder, random_generators
from labse_tf.tokenization import Tokenizer
from labse_tf.training import loop, resumable
from labse_tf.training.dev import validate_on
from labse_tf.training.gradient_cache import cached_gradients
from labse_tf.training.initial_weights import restore, write_report
from labse_tf.training.optimizer import build_optimizer
from labse_tf.training.run_dir import Origin, RunDir


class DualEncoderTrainer(loop.Trainer):
    """Additive margin softmax of both directions over the gathered global batch."""

    def __init__(self, *, encoder, settings: TrainConfig, **kwargs) -> None:
        """Prepares to train.

        Args:
          encoder: from `build_encoder`, `replayable` if `chunk_size` is not 0.
          settings: `margin`, `scale`, `chunk_size` and `mask_duplicates` are used.
          **kwargs: as for `Trainer`.
        """
        super().__init__(variables=encoder.trainable_variables, **kwargs)
        self._encoder = encoder
        self._settings = settings

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        return [(self._encoder.get_embedding_table(), _both_sides(batch)["input_word_ids"])]

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        return self._loss_of(self._embed(_both_sides(batch)), batch["keys"])

    def replica_gradients(self, batch) -> tuple[tf.Tensor, tf.Tensor, list]:
        if not self._settings.chunk_size:
            return super().replica_gradients(batch)
        return cached_gradients(
            self._embed,
            _both_sides(batch),
            lambda embeddings: self._loss_of(embeddings, batch["keys"]),
            self._variables,
            chunk_rows=2 * self._settings.chunk_size,
            generators=random_generators(self._encoder),
            tables=self.rows_read(batch) if self._lazy_embeddings else (),
        )

    def _embed(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return embed(self._encoder, inputs, training=True)

    def _loss_of(self, embeddings: tf.Tensor, keys: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        source, target = tf.split(embeddings, 2)
        sources, targets = cross_replica_concat(source), cross_replica_concat(target)
        replicas = tf.distribute.get_replica_context()
        local_batch, global_batch = tf.shape(source)[0], tf.shape(sources)[0]
        offset = tf.cast(replicas.replica_id_in_sync_group, tf.int32) * local_batch
        ignored = tf.zeros([local_batch, global_batch], tf.bool)
        if self._settings.mask_duplicates:
            all_keys = tf.transpose(cross_replica_concat(keys))
            ignored = duplicates(tf.transpose(keys), all_keys, positive_offset=offset)
        settings = {
            "positive_offset": offset,
            "margin": self._settings.margin,
            "scale": self._settings.scale,
            "ignored": ignored,
        }
        losses = additive_margin_softmax(source, targets, **settings)
        losses += additive_margin_softmax(target, sources, **settings)
        similarities = tf.where(ignored, -1.0, tf.matmul(source, targets, transpose_b=True))
        nearest = tf.argmax(similarities, 1, output_type=tf.int32)
        hits = tf.cast(nearest == offset + tf.range(local_batch), tf.float32)
        divisor = tf.cast(global_batch, tf.float32)
        return tf.reduce_sum(losses) / divisor, tf.reduce_sum(hits) / divisor


def _both_sides(batch) -> dict[str, tf.Tensor]:
    # One call of the encoder for both: they have the same length and the same weights.
    return tf.nest.map_structure(
        lambda *sides: tf.concat(sides, axis=0), batch["source"], batch["target"]
    )


def train(
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    *,
    init: Origin | None = None,
) -> None:
    """Trains the dual encoder, from the weights of `init` or from scratch; resumes.

    With `train.steps` 0 the run holds the encoder as it starts.

    Raises:
      InputError: if a replica's batch cannot be cut into chunks of `train.chunk_size`.
    """
    settings = config.train
    local_batch = settings.batch_size // strategy.num_replicas_in_sync
    if settings.chunk_size and local_batch % settings.chunk_size:
        raise InputError(
            f"a replica's {local_batch} pairs do not divide into chunks of {settings.chunk_size}",
            remedy=f"set 'train.chunk_size' to a divisor of {local_batch}",
        )
    dev_pairs = read_dev_pairs(config) if settings.dev else {}
    tokenizer = Tokenizer(
        run_dir.vocab_file, max_bytes_per_word=config.tokenizer.max_bytes_per_word
    )
    with strategy.scope():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = build_encoder(
            config.encoder, compute=config.compute, replayable=settings.chunk_size > 0
        )
        if init is not None:
            fates = restore(init, encoder)
            if strategy.extended.should_checkpoint:
                write_report(fates, init, encoder.variables, run_dir)
        optimizer = build_optimizer(settings.optimizer, steps=settings.steps)
        optimizer.build(encoder.trainable_variables)

    def make_trainer(steps_done: int) -> DualEncoderTrainer:
        dataset = loop.distribute(
            strategy,
            lambda: pair_batches(config, tokenizer, skip=steps_done),
            settings.batch_size,
        )
        return DualEncoderTrainer(
            encoder=encoder,
            settings=settings,
            strategy=strategy,
            optimizer=optimizer,
            clip_norm=settings.optimizer.clip_norm,
            lazy_embeddings=settings.optimizer.lazy_embeddings,
            dataset=dataset,
        )

    resumable.run(
        description="train the dual encoder",
        strategy=strategy,
        make_trainer=make_trainer,
        optimizer=optimizer,
        checkpoint=tf.train.Checkpoint(encoder=encoder, optimizer=optimizer),
        checkpoint_dir=str(run_dir.checkpoints),
        run_dir=run_dir,
        steps=settings.steps,
        loop=settings.loop,
        validation=validate_on(dev_pairs, settings, strategy, encoder, tokenizer),
    )
