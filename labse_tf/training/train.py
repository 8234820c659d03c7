"""Dual-encoder training with the whole global batch as negatives (LaBSE, sections 2 and 2.1)."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.config import Config
from labse_tf.data.dev_pairs import read_dev_pairs
from labse_tf.data.pairs import pair_batches
from labse_tf.distribution import cross_replica_concat
from labse_tf.losses import additive_margin_softmax
from labse_tf.model.dual_encoder import embed
from labse_tf.model.encoder import build_encoder
from labse_tf.tokenization import Tokenizer
from labse_tf.training import loop, resumable
from labse_tf.training.dev import validate_on
from labse_tf.training.initial_weights import restore, write_report
from labse_tf.training.optimizer import build_optimizer
from labse_tf.training.run_dir import Origin, RunDir


class DualEncoderTrainer(loop.Trainer):
    """Additive margin softmax of both directions over the gathered global batch."""

    def __init__(self, *, encoder, margin: float, scale: float, **kwargs) -> None:
        super().__init__(variables=encoder.trainable_variables, **kwargs)
        self._encoder = encoder
        self._margin = margin
        self._scale = scale

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        ids = tf.concat([side["input_word_ids"] for side in batch], axis=0)
        return [(self._encoder.get_embedding_table(), ids)]

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        # One call for both sides: they have the same length and the same weights.
        both = tf.nest.map_structure(lambda *sides: tf.concat(sides, axis=0), *batch)
        source, target = tf.split(embed(self._encoder, both, training=True), 2)
        sources, targets = cross_replica_concat(source), cross_replica_concat(target)
        replicas = tf.distribute.get_replica_context()
        local_batch, global_batch = tf.shape(source)[0], tf.shape(sources)[0]
        offset = tf.cast(replicas.replica_id_in_sync_group, tf.int32) * local_batch
        settings = {"positive_offset": offset, "margin": self._margin, "scale": self._scale}
        losses = additive_margin_softmax(source, targets, **settings)
        losses += additive_margin_softmax(target, sources, **settings)
        nearest = tf.argmax(tf.matmul(source, targets, transpose_b=True), 1, output_type=tf.int32)
        hits = tf.cast(nearest == offset + tf.range(local_batch), tf.float32)
        divisor = tf.cast(global_batch, tf.float32)
        return tf.reduce_sum(losses) / divisor, tf.reduce_sum(hits) / divisor


def train(
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    *,
    init: Origin | None = None,
) -> None:
    """Trains the dual encoder, from the weights of `init` or from scratch; resumes.

    With `train.steps` 0 the run holds the encoder as it starts.
    """
    settings = config.train
    dev_pairs = read_dev_pairs(config) if settings.dev else {}
    tokenizer = Tokenizer(
        run_dir.vocab_file, max_bytes_per_word=config.tokenizer.max_bytes_per_word
    )
    with strategy.scope():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = build_encoder(config.encoder, compute=config.compute)
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
            margin=settings.margin,
            scale=settings.scale,
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
