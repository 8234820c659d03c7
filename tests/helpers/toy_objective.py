"""An objective in one file: sentences are to be as near as their lengths in tokens say."""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from labse_tf.config import EncoderConfig, LoopConfig, OptimizerConfig
from labse_tf.data.features import ENCODER_INPUTS
from labse_tf.model.encoder import build_encoder, embed
from labse_tf.training.fit import Stage, fit
from labse_tf.training.objectives import Objective


@dataclasses.dataclass
class LengthConfig:
    batch_size: int = 8
    steps: int = 30
    optimizer: OptimizerConfig = dataclasses.field(
        default_factory=lambda: OptimizerConfig(learning_rate=0.01)
    )
    loop: LoopConfig = dataclasses.field(default_factory=lambda: LoopConfig(10, 10, 2))


class Length(Objective):
    """The squared error of the first coordinate as the share of a sequence that is filled."""

    def __init__(self, encoder) -> None:
        super().__init__({"encoder": encoder}, features=ENCODER_INPUTS)
        self._encoder = encoder

    def tables_read(self, batch, step):
        return [(self._encoder.get_embedding_table(), self._encoder.rows(batch))]

    def loss(self, batch, step):
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
        network = build_encoder(encoder, replayable=True)
    stage = Stage(
        description="learn lengths",
        steps=settings.steps,
        batch_size=settings.batch_size,
        optimizer=settings.optimizer,
        loop=settings.loop,
        checkpoints=run_dir.checkpoints,
    )
    made = functools.partial(batches, settings, sentences, tokenizer)
    fit(Length(network), made, stage, run_dir, strategy)
    return network
