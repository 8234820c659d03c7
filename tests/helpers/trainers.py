"""A trainer of any objective, on one device, for tests of single steps."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.training.fit import Trainer


def make_trainer(objective, dataset=None, optimizer=None, *, clip_norm=0.0, **options):
    """By SGD with a rate of 0.1 if no optimiser is given; `dataset` may be one batch, repeated."""
    if isinstance(dataset, dict):
        dataset = tf.data.Dataset.from_tensors(dataset).repeat()
    return Trainer(
        objective,
        strategy=tf.distribute.get_strategy(),
        optimizer=optimizer or tf_keras.optimizers.SGD(0.1),
        clip_norm=clip_norm,
        dataset=tf.data.Dataset.range(1) if dataset is None else dataset,
        **options,
    )
