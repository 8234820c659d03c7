"""Cross-entropy of masked tokens: the loss of MLM, TLM and CMLM."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from labse_tf.data.features import Features
from labse_tf.data.masking import MASKED_FEATURES
from labse_tf.data.neighbours import NEIGHBOUR_FEATURES
from labse_tf.model.mlm_head import transform_masked
from labse_tf.model.sampled_softmax import draw_uniform, sampled_softmax
from labse_tf.model.slots import token_states
from labse_tf.training.masked_model import MaskedModel
from labse_tf.training.optimizer.gradient_cache import summed_gradients

_SAMPLES_SEED = 17


class MaskedLoss:
    """Cross-entropy of the masked tokens, averaged over those of the global batch.

    The softmax is over the whole vocabulary, so every row of the tied table has a gradient and its
    update is dense; or, if `samples` is not 0, over that many tokens and the labels. With a
    `chunk_size`, the gradients of as many sequences are computed at a time and added up; the labels
    of a sampled softmax are those of the chunk.
    """

    def __init__(self, model: MaskedModel, *, samples: int = 0, chunk_size: int = 0) -> None:
        self._model = model
        self._samples = samples
        self._chunk_size = chunk_size

    @property
    def features(self) -> Features:
        """Those of a batch that the loss reads."""
        return MASKED_FEATURES if self._model.slots is None else NEIGHBOUR_FEATURES

    def rows_read(self, batch, step: tf.Tensor) -> list[tuple[tf.Variable, tf.Tensor]]:
        """As `Trainer.rows_read`."""
        if not self._samples:
            return []  # The whole table is read and updated at each step.
        encoder = self._model.encoder
        read = [encoder.rows(batch), batch["masked_ids"], self._draw(step)]
        if self._model.slots is not None:
            read.append(encoder.rows(batch["neighbour"]))
        ids = tf.concat([tf.reshape(one, [-1]) for one in read], axis=0)
        return [(encoder.get_embedding_table(), ids)]

    def replica_loss(self, batch, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns this replica's shares of the global loss and accuracy: two scalars.

        Args:
          batch: with `features`.
          step: int64 scalar; another sample is drawn at each step.
        """
        return self._share(batch, step, _total(batch))

    def replica_gradients(
        self, batch, step: tf.Tensor, variables: Sequence[tf.Variable], *, lazy: bool
    ) -> tuple[tf.Tensor, tf.Tensor, list]:
        """Returns `replica_loss` and its gradients, zeros where it does not depend on a variable.

        Args:
          batch: likewise.
          step: likewise.
          variables: the model's.
          lazy: whether the gradient of a table that is read in part may be that of its rows.
        """
        # Over the global batch, of which a chunk sees only its own.
        total = _total(batch)
        if self._chunk_size:
            return summed_gradients(
                lambda chunk: self._share(chunk, step, total),
                batch,
                variables,
                chunk_rows=self._chunk_size,
                tables=self.rows_read(batch, step) if lazy else (),
            )
        with tf.GradientTape() as tape:
            loss, accuracy = self._share(batch, step, total)
        zero = tf.UnconnectedGradients.ZERO
        return loss, accuracy, tape.gradient(loss, variables, unconnected_gradients=zero)

    def _share(self, batch, step: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        ids, weights = batch["masked_ids"], batch["masked_weights"]
        sequence = token_states(self._model.encoder, batch, slots=self._model.slots, training=True)
        losses, hits = self._predict(sequence, batch["masked_positions"], ids, step)
        return tf.reduce_sum(losses * weights) / total, tf.reduce_sum(hits * weights) / total

    def _predict(self, sequence, positions, ids, step) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns cross-entropy and correctness (1 or 0) of each masked token, shaped as `ids`."""
        head = self._model.head
        if not self._samples:
            logits = tf.cast(head(sequence, positions), tf.float32)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)
            hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == ids, tf.float32)
            return losses, hits
        losses, hits = sampled_softmax(
            tf.cast(transform_masked(head, sequence, positions), tf.float32),
            tf.reshape(ids, [-1]),
            head.embedding_table,
            head.bias,
            self._draw(step),
        )
        return tf.reshape(losses, tf.shape(ids)), tf.reshape(hits, tf.shape(ids))

    def _draw(self, step: tf.Tensor) -> tf.Tensor:
        # All replicas draw the same tokens, different ones at each step.
        seed = tf.stack([step, tf.constant(_SAMPLES_SEED, tf.int64)])
        return draw_uniform(self._samples, self._model.head.bias.shape[0], seed)


def _total(batch) -> tf.Tensor:
    """Returns the number of masked tokens of the global batch."""
    total = tf.reduce_sum(batch["masked_weights"])
    replicas = tf.distribute.get_replica_context()
    if replicas.num_replicas_in_sync > 1:
        total = replicas.all_reduce("SUM", total)
    return total
