"""The trainer of both tasks at once: masked tokens and bitext retrieval, in each step."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
import tf_keras

from labse_tf.config import TrainConfig
from labse_tf.data.features import Features
from labse_tf.data.streams import WHOLE, Part
from labse_tf.training.dual_encoder_trainer import DualEncoderTrainer
from labse_tf.training.loop.trainer import sum_over_replicas
from labse_tf.training.masked_loss import MaskedLoss
from labse_tf.training.masked_model import MaskedModel


class JointTrainer(DualEncoderTrainer):
    """Trains on the loss of masked tokens plus `bitext_weight` times that of translation pairs.

    Yang et al. 2021, section 3.2: L = L_cmlm + 0.2 L_br, with a batch of both tasks at each step.
    A batch is a dict of `masked` and `pairs`, which need not be of one size. The accuracy is that
    of the pairs; `masked_loss` and `masked_accuracy` are metrics of their own.
    """

    def __init__(
        self,
        *,
        model: MaskedModel,
        settings: TrainConfig,
        sampled_softmax: int = 0,
        masked_chunk_size: int = 0,
        **kwargs,
    ) -> None:
        """Prepares to train.

        Args:
          model: any dropout of its encoder must be replayable.
          settings: as for `DualEncoderTrainer`, and `bitext_weight`.
          sampled_softmax: as for `MlmTrainer`.
          masked_chunk_size: likewise, its `chunk_size`; only with `settings.chunk_size`.
          **kwargs: as for `Trainer`.
        """
        super().__init__(
            encoder=model.encoder, settings=settings, variables=model.variables, **kwargs
        )
        self._masked = MaskedLoss(model, samples=sampled_softmax, chunk_size=masked_chunk_size)
        with self._strategy.scope():
            self.extra_metrics = {
                name: tf_keras.metrics.Mean(name) for name in ("masked_loss", "masked_accuracy")
            }

    @property
    def features(self) -> Features:
        return {"masked": self._masked.features, "pairs": super().features}

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        masked = self._masked.rows_read(batch["masked"], self._optimizer.iterations)
        if not masked:
            return []  # The whole table is read.
        [(table, ids)], [(_, more)] = masked, self._rows_of_pairs(batch["pairs"])
        return [(table, tf.concat([ids, tf.reshape(more, [-1])], axis=0))]

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        loss, accuracy = super().replica_loss(batch["pairs"])
        masked = self._masked.replica_loss(batch["masked"], self._optimizer.iterations)
        self._observe_masked(*masked)
        return masked[0] + self._settings.bitext_weight * loss, accuracy

    def _cached_gradients(self, batch) -> tuple[tf.Tensor, tf.Tensor, list]:
        """Adds both tasks' gradients: the gradient cache knows embeddings, but no tokens."""
        weight = self._settings.bitext_weight
        loss, accuracy, of_pairs = super()._cached_gradients(batch["pairs"])
        masked, masked_accuracy, of_masked = self._masked.replica_gradients(
            batch["masked"],
            self._optimizer.iterations,
            self._variables,
            lazy=self._lazy_embeddings,
        )
        self._observe_masked(masked, masked_accuracy)
        gradients = [_add(*both, weight) for both in zip(of_masked, of_pairs, strict=True)]
        return masked + weight * loss, accuracy, gradients

    def _observe_masked(self, *found: tf.Tensor) -> None:
        summed = sum_over_replicas([tf.stop_gradient(one) for one in found])
        for name, value in zip(self.extra_metrics, summed, strict=True):
            self.extra_metrics[name].update_state(value)


def joint_batches(
    masked: Callable[..., tf.data.Dataset],
    pairs: Callable[..., tf.data.Dataset],
    step: int,
    part: Part = WHOLE,
) -> tf.data.Dataset:
    """Returns batches of both tasks; see `JointTrainer`."""
    both = tf.data.Dataset.zip((masked(step, part), pairs(step, part)))
    return both.map(lambda masked, pairs: {"masked": masked, "pairs": pairs})


def _add(masked, pairs, weight: float):
    """Returns `masked + weight * pairs`; rows of a table stay rows if both are."""
    if isinstance(masked, tf.IndexedSlices) and isinstance(pairs, tf.IndexedSlices):
        return tf.IndexedSlices(
            tf.concat([masked.values, weight * pairs.values], axis=0),
            tf.concat([masked.indices, tf.cast(pairs.indices, masked.indices.dtype)], axis=0),
            masked.dense_shape,
        )
    return tf.convert_to_tensor(masked) + weight * tf.convert_to_tensor(pairs)
