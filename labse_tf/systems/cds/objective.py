"""The trainer of the translation model."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.data.features import Features
from labse_tf.model.dropout import dropout_generators
from labse_tf.systems.cds.batches import TRANSLATION_FEATURES
from labse_tf.systems.cds.translator import token_log_likelihoods
from labse_tf.training.loop.trainer import Trainer


class TranslatorTrainer(Trainer):
    """Cross-entropy of the target tokens, averaged over those of the global batch."""

    def __init__(self, *, translator, **kwargs) -> None:
        super().__init__(
            variables=translator.trainable_variables,
            generators=dropout_generators(translator),
            **kwargs,
        )
        self._translator = translator

    @property
    def features(self) -> Features:
        return TRANSLATION_FEATURES

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        targets = batch["targets"]
        logits = self._translator(batch, training=True)
        is_token = tf.cast(targets != 0, tf.float32)
        hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == targets, tf.float32)
        total = tf.reduce_sum(is_token)
        replicas = tf.distribute.get_replica_context()
        if replicas.num_replicas_in_sync > 1:
            total = replicas.all_reduce("SUM", total)
        loss = -tf.reduce_sum(token_log_likelihoods(logits, targets))
        return loss / total, tf.reduce_sum(hits * is_token) / total
