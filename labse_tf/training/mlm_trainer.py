"""The trainer of MLM, TLM and CMLM: cross-entropy of the masked tokens."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
import tf_keras

from labse_tf.data.features import Features
from labse_tf.data.masking import MASKED_FEATURES
from labse_tf.data.neighbours import NEIGHBOUR_FEATURES
from labse_tf.model.dropout import dropout_generators
from labse_tf.model.mlm_head import trained_variables, transform_masked
from labse_tf.model.sampled_softmax import draw_uniform, sampled_softmax
from labse_tf.model.slots import Slots, token_states
from labse_tf.training.loop.trainer import Trainer, sum_over_replicas

_SAMPLES_SEED = 17
_SOURCES_SHOWN = 5


class MlmTrainer(Trainer):
    """Cross-entropy of the masked tokens, averaged over those of the global batch.

    The softmax is over the whole vocabulary, so every row of the tied table has a gradient and its
    update is dense; or, if `sampled_softmax` is not 0, over that many tokens and the labels.
    """

    def __init__(
        self,
        *,
        encoder,
        head,
        slots: Slots | None = None,
        sampled_softmax: int = 0,
        sources_of: Callable[[int], list[str]] | None = None,
        **kwargs,
    ) -> None:
        """Prepares to train.

        Args:
          encoder: from `build_encoder`; any dropout must be replayable.
          head: from `build_mlm_head`.
          slots: those of CMLM, whose batches have neighbours.
          sampled_softmax: see above.
          sources_of: returns the names of the files of a step's batch, for error messages.
          **kwargs: as for `Trainer`.
        """
        super().__init__(
            variables=trained_variables(encoder, head, slots),
            generators=dropout_generators(encoder),
            **kwargs,
        )
        self._encoder = encoder
        self._head = head
        self._slots = slots
        self._sampled_softmax = sampled_softmax
        self._sources_of = sources_of
        names = ["tokens", "mlm_filled"]
        names += [f"{task}_{name}" for task in ("mlm", "tlm") for name in ("loss", "accuracy")]
        with self._strategy.scope():
            self.extra_metrics = {name: tf_keras.metrics.Mean(name) for name in names}

    @property
    def features(self) -> Features:
        return MASKED_FEATURES if self._slots is None else NEIGHBOUR_FEATURES

    def describe_batch(self, step: int) -> str:
        sources = self._sources_of(step) if self._sources_of else []
        shown = ", ".join(sources[:_SOURCES_SHOWN])
        more = len(sources) - _SOURCES_SHOWN
        return shown and f" (its batch is from {shown}{f' and {more} more files' * (more > 0)})"

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        if not self._sampled_softmax:
            return []  # The whole table is read and updated at each step.
        read = [self._encoder.rows(batch), batch["masked_ids"], self._draw()]
        if self._slots is not None:
            read.append(self._encoder.rows(batch["neighbour"]))
        ids = tf.concat([tf.reshape(one, [-1]) for one in read], axis=0)
        return [(self._encoder.get_embedding_table(), ids)]

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        ids, weights = batch["masked_ids"], batch["masked_weights"]
        sequence = token_states(self._encoder, batch, slots=self._slots, training=True)
        losses, hits = self._predict(sequence, batch["masked_positions"], ids)
        total = tf.reduce_sum(weights)
        replicas = tf.distribute.get_replica_context()
        if replicas.num_replicas_in_sync > 1:
            total = replicas.all_reduce("SUM", total)
        return tf.reduce_sum(losses * weights) / total, tf.reduce_sum(hits * weights) / total

    def _predict(self, sequence, positions, ids) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns cross-entropy and correctness (1 or 0) of each masked token, shaped as `ids`."""
        if not self._sampled_softmax:
            logits = tf.cast(self._head(sequence, positions), tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)
            hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == ids, tf.float32)
            return losses, hits
        losses, hits = sampled_softmax(
            tf.cast(transform_masked(self._head, sequence, positions), tf.float32),
            tf.reshape(ids, [-1]),
            self._head.embedding_table,
            self._head.bias,
            self._draw(),
        )
        return tf.reshape(losses, tf.shape(ids)), tf.reshape(hits, tf.shape(ids))

    def _draw(self) -> tf.Tensor:
        # All replicas draw the same tokens, different ones at each step.
        seed = tf.stack([self._optimizer.iterations, tf.constant(_SAMPLES_SEED, tf.int64)])
        return draw_uniform(self._sampled_softmax, self._head.bias.shape[0], seed)

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
