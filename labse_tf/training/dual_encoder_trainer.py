"""The trainer of the dual encoder: additive margin softmax (LaBSE, equations 1 to 4)."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from labse_tf.config import TrainConfig
from labse_tf.data.features import Features
from labse_tf.data.pairs import NO_KEY, pair_features
from labse_tf.losses import (
    duplicates,
    leading_columns,
    margin_cross_entropies,
    margin_cross_entropy,
)
from labse_tf.model.dropout import dropout_generators
from labse_tf.model.dual_encoder import embed
from labse_tf.model.protocol import EncoderNetwork
from labse_tf.training.distribution import cross_replica_concat
from labse_tf.training.loop.trainer import Trainer
from labse_tf.training.optimizer.gradient_cache import cached_gradients


class DualEncoderTrainer(Trainer):
    """Additive margin softmax in both directions over the gathered global batch.

    With `settings.matryoshka`, the loss is the mean over the encoder's own dimension and these: of
    the leading columns of all vectors, scaled to unit length (Kusupati et al. 2022, equation 1 with
    equal weights). The accuracy is that of the full vectors.
    """

    def __init__(
        self,
        *,
        encoder: EncoderNetwork,
        settings: TrainConfig,
        variables: Sequence[tf.Variable] | None = None,
        **kwargs,
    ) -> None:
        """Prepares to train.

        Args:
          encoder: the encoder to train; any dropout must be replayable.
          settings: those of the loss, and `chunk_size`.
          variables: what to train; None: those of the encoder.
          **kwargs: as for `Trainer`.
        """
        self._dropout = dropout_generators(encoder)
        trained = encoder.trainable_variables if variables is None else variables
        super().__init__(variables=trained, generators=self._dropout, **kwargs)
        self._encoder = encoder
        self._settings = settings

    @property
    def features(self) -> Features:
        return pair_features(self._settings.hard_negatives)

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        return self._rows_of_pairs(batch)

    def _rows_of_pairs(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        return [(self._encoder.get_embedding_table(), self._encoder.rows(all_inputs(batch)))]

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        return self._loss_of(self._embed(all_inputs(batch)), batch)

    def replica_gradients(self, batch) -> tuple[tf.Tensor, tf.Tensor, list]:
        if not self._settings.chunk_size:
            return super().replica_gradients(batch)
        return self._cached_gradients(batch)

    def _cached_gradients(self, batch) -> tuple[tf.Tensor, tf.Tensor, list]:
        return cached_gradients(
            self._embed,
            all_inputs(batch),
            lambda embeddings: self._loss_of(embeddings, batch),
            self._variables,
            chunk_rows=(2 + self._settings.hard_negatives) * self._settings.chunk_size,
            generators=self._dropout,
            tables=self._rows_of_pairs(batch) if self._lazy_embeddings else (),
        )

    def _embed(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        return embed(self._encoder, inputs, training=True)

    def _loss_of(self, embeddings: tf.Tensor, batch) -> tuple[tf.Tensor, tf.Tensor]:
        local_batch = tf.shape(batch["keys"])[0]
        source, target, negatives = tf.split(
            embeddings, [local_batch, local_batch, self._settings.hard_negatives * local_batch]
        )
        vectors = {"source": source, "target": target}
        vectors |= {"sources": self._candidates(source), "targets": self._candidates(target)}
        context = tf.distribute.get_replica_context()
        offset = 0
        if self._settings.global_negatives:
            offset = tf.cast(context.replica_id_in_sync_group, tf.int32) * local_batch
        ignored = tf.zeros([local_batch, tf.shape(vectors["sources"])[0]], tf.bool)
        if self._settings.mask_duplicates:
            all_keys = tf.transpose(self._candidates(batch["keys"]))
            ignored = duplicates(tf.transpose(batch["keys"]), all_keys, positive_offset=offset)
        all_ignored = ignored
        if self._settings.hard_negatives:
            # All negatives of the global batch, for every source; appendix B.
            vectors["wrong"] = self._candidates(negatives)
            all_ignored = tf.concat([ignored, self._ignored_negatives(batch)], axis=1)
        # The full vectors first.
        found = [
            self._losses(
                {name: leading_columns(rows, dim) for name, rows in vectors.items()},
                offset=offset,
                ignored=ignored,
                all_ignored=all_ignored,
            )
            for dim in self._settings.dims(embeddings.shape[-1])
        ]
        similarities = tf.where(all_ignored, -1.0, found[0][1])
        nearest = tf.argmax(similarities, 1, output_type=tf.int32)
        hits = tf.cast(nearest == offset + tf.range(local_batch), tf.float32)
        divisor = tf.cast(context.num_replicas_in_sync * local_batch, tf.float32)
        loss = tf.add_n([tf.reduce_sum(losses) for losses, _ in found]) / len(found)
        return loss / divisor, tf.reduce_sum(hits) / divisor

    def _losses(
        self, vectors: dict[str, tf.Tensor], *, offset, ignored: tf.Tensor, all_ignored: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns both directions' losses, `[batch]`, and the sources' similarities.

        Args:
          vectors: unit rows of one dimension: `source` and `target` of this replica, the candidates
            `sources` and `targets`, and with hard negatives `wrong`, candidates for the sources.
          offset: where this replica's pairs begin among the candidates.
          ignored: `[batch, n]`, as for `margin_cross_entropy`, of n candidates.
          all_ignored: likewise, of the targets and the hard negatives.
        """
        loss = {"margin": self._settings.margin, "scale": self._settings.scale}
        forward = tf.matmul(vectors["source"], vectors["targets"], transpose_b=True)
        if self._one_matrix(tf.distribute.get_replica_context()):
            return margin_cross_entropies(forward, ignored=ignored, **loss), forward
        loss["positive_offset"] = offset
        backward = tf.matmul(vectors["target"], vectors["sources"], transpose_b=True)
        losses = margin_cross_entropy(backward, ignored=ignored, **loss)
        if "wrong" in vectors:
            wrong = tf.matmul(vectors["source"], vectors["wrong"], transpose_b=True)
            forward = tf.concat([forward, wrong], axis=1)
        return losses + margin_cross_entropy(forward, ignored=all_ignored, **loss), forward

    def _one_matrix(self, context) -> bool:
        """Returns whether both directions have the same similarities."""
        own = context.num_replicas_in_sync == 1 or not self._settings.global_negatives
        return own and not self._settings.hard_negatives

    def _candidates(self, rows: tf.Tensor) -> tf.Tensor:
        return cross_replica_concat(rows) if self._settings.global_negatives else rows

    def _ignored_negatives(self, batch) -> tf.Tensor:
        """Returns `[batch, n]`: which hard negatives are missing or are the query's own target."""
        keys = tf.reshape(self._candidates(batch["negative_keys"]), [1, -1])
        return (keys == NO_KEY) | (keys == batch["keys"][:, 1:])


def all_inputs(batch) -> dict[str, tf.Tensor]:
    """Returns sources, targets and hard negatives, concatenated for one encoder call."""
    parts = [batch["source"], batch["target"]]
    if "negatives" in batch:
        flat = {
            name: tf.reshape(ids, [-1, tf.shape(ids)[-1]])
            for name, ids in batch["negatives"].items()
        }
        parts.append(flat)
    return tf.nest.map_structure(lambda *rows: tf.concat(rows, axis=0), *parts)
