"""The objective of the translation model."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.systems.cds.batches import TRANSLATION_FEATURES
from labse_tf.systems.cds.translator import token_log_likelihoods
from labse_tf.training.distribution import sum_over_replicas
from labse_tf.training.objectives import Objective


class TranslatorLoss(Objective):
    """Cross-entropy of the target tokens, averaged over those of the global batch."""

    def __init__(self, translator) -> None:
        super().__init__({"translator": translator}, features=TRANSLATION_FEATURES)
        self._translator = translator

    def loss(self, batch, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        targets = batch["targets"]
        logits = self._translator(batch, training=True)
        is_token = tf.cast(targets != 0, tf.float32)
        hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == targets, tf.float32)
        total = sum_over_replicas([tf.reduce_sum(is_token)])[0]
        loss = -tf.reduce_sum(token_log_likelihoods(logits, targets))
        return loss / total, tf.reduce_sum(hits * is_token) / total
