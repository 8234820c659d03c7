"""The trainer of MLM, TLM and CMLM: cross-entropy of the masked tokens."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
import tf_keras

from labse_tf.data.features import Features
from labse_tf.model.dropout import dropout_generators
from labse_tf.training.loop.trainer import Trainer, sum_over_replicas
from labse_tf.training.masked_loss import MaskedLoss
from labse_tf.training.masked_model import MaskedModel

_SOURCES_SHOWN = 5


class MlmTrainer(Trainer):
    """Trains a `MaskedModel` by `MaskedLoss`, and measures each task of a batch."""

    def __init__(
        self,
        *,
        model: MaskedModel,
        sampled_softmax: int = 0,
        chunk_size: int = 0,
        sources_of: Callable[[int], list[str]] | None = None,
        **kwargs,
    ) -> None:
        """Prepares to train.

        Args:
          model: any dropout of its encoder must be replayable.
          sampled_softmax: tokens of the softmax, see `MaskedLoss`; 0: the whole vocabulary.
          chunk_size: sequences whose gradients are computed at a time; 0: all of a replica's.
          sources_of: returns the names of the files of a step's batch, for error messages.
          **kwargs: as for `Trainer`.
        """
        super().__init__(
            variables=model.variables, generators=dropout_generators(model.encoder), **kwargs
        )
        self._masked = MaskedLoss(model, samples=sampled_softmax, chunk_size=chunk_size)
        self._sources_of = sources_of
        names = ["tokens", "mlm_filled"]
        names += [f"{task}_{name}" for task in ("mlm", "tlm") for name in ("loss", "accuracy")]
        with self._strategy.scope():
            self.extra_metrics = {name: tf_keras.metrics.Mean(name) for name in names}

    @property
    def features(self) -> Features:
        return self._masked.features

    def describe_batch(self, step: int) -> str:
        sources = self._sources_of(step) if self._sources_of else []
        shown = ", ".join(sources[:_SOURCES_SHOWN])
        more = len(sources) - _SOURCES_SHOWN
        return shown and f" (its batch is from {shown}{f' and {more} more files' * (more > 0)})"

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        return self._masked.rows_read(batch, self._optimizer.iterations)

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        return self._masked.replica_loss(batch, self._optimizer.iterations)

    def replica_gradients(self, batch) -> tuple[tf.Tensor, tf.Tensor, list]:
        return self._masked.replica_gradients(
            batch, self._optimizer.iterations, self._variables, lazy=self._lazy_embeddings
        )

    def observe(self, batch, loss: tf.Tensor, accuracy: tf.Tensor) -> None:
        """Updates loss and accuracy by task, tokens per step, and the non-padding share of MLM."""
        mask = tf.cast(batch["input_mask"], tf.float32)
        tokens, filled = sum_over_replicas([tf.reduce_sum(mask), tf.reduce_mean(mask)])
        filled /= self._strategy.num_replicas_in_sync
        # All of a batch is one task; only pairs have a second segment.
        is_tlm = tf.cast(tf.reduce_any(batch["input_type_ids"] == 1), tf.float32)
        self.extra_metrics["tokens"].update_state(tokens)
        self.extra_metrics["mlm_filled"].update_state(filled, sample_weight=1.0 - is_tlm)
        for task, weight in (("mlm", 1.0 - is_tlm), ("tlm", is_tlm)):
            self.extra_metrics[f"{task}_loss"].update_state(loss, sample_weight=weight)
            self.extra_metrics[f"{task}_accuracy"].update_state(accuracy, sample_weight=weight)
