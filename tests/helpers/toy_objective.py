"""An objective in one file: sentences are to be as near as their lengths in tokens say."""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from labse_tf.config import EncoderConfig, LoopConfig, OptimizerConfig
from labse_tf.data.features import ENCODER_INPUTS, Features
from labse_tf.model.dual_encoder import embed
from labse_tf.model.encoder import build_encoder
from labse_tf.training.loop.fit import Stage, fit
from labse_tf.training.loop.trainer import Trainer


@dataclasses.dataclass
class LengthConfig:
    batch_size: int = 8
    steps: int = 30
    optimizer: OptimizerConfig = dataclasses.field(
        default_factory=lambda: OptimizerConfig(learning_rate=0.01)
    )
    loop: LoopConfig = dataclasses.field(default_factory=lambda: LoopConfig(10, 10, 2))


class LengthTrainer(Trainer):
    """The squared error of the first coordinate as the share of a sequence that is filled."""

    def __init__(self, *, encoder, **kwargs) -> None:
        super().__init__(variables=encoder.trainable_variables, **kwargs)
        self._encoder = encoder

    @property
    def features(self) -> Features:
        return ENCODER_INPUTS

    def rows_read(self, batch):
        return [(self._encoder.get_embedding_table(), self._encoder.rows(batch))]

    def replica_loss(self, batch):
        found = embed(self._encoder, batch, training=True)[:, 0]
        wanted = tf.reduce_mean(tf.cast(batch["input_mask"], tf.float32), axis=1)
        error = tf.square(found - wanted)
        rows = tf.distribute.get_replica_context().num_replicas_in_sync * tf.shape(error)[0]
        divisor = tf.cast(rows, tf.float32)
        near = tf.cast(error < 0.01, tf.float32)
        return tf.reduce_sum(error) / divisor, tf.reduce_sum(near) / divisor


def batches(settings: LengthConfig, sentences, tokenizer, skip: int) -> tf.data.Dataset:
    texts = tf.data.Dataset.from_tensor_slices(list(sentences)).repeat()
    groups = texts.batch(settings.batch_size, drop_remainder=True).skip(skip)
    return groups.map(lambda group: tokenizer.pack([tokenizer(group)], 48))


def train(settings: LengthConfig, sentences, encoder: EncoderConfig, tokenizer, run_dir, strategy):
    with strategy.scope():
        network = build_encoder(encoder)
    fit(
        Stage(
            description="learn lengths",
            steps=settings.steps,
            batch_size=settings.batch_size,
            optimizer=settings.optimizer,
            loop=settings.loop,
            checkpoints=run_dir.checkpoints,
        ),
        trainer=functools.partial(LengthTrainer, encoder=network),
        batches=functools.partial(batches, settings, sentences, tokenizer),
        model={"encoder": network},
        variables=network.trainable_variables,
        run_dir=run_dir,
        strategy=strategy,
    )
    return network
