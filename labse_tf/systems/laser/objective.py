"""The objective of LASER: cross-entropy of the target tokens, through the sentence vector."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.losses import draw_uniform, sampled_softmax
from labse_tf.model.protocol import EncoderNetwork
from labse_tf.systems.laser.batches import LASER_FEATURES
from labse_tf.systems.laser.decoder import LaserDecoder, previous_tokens
from labse_tf.training.distribution import sum_over_replicas
from labse_tf.training.objectives import Objective, Tables

_SAMPLES_SEED = 19


class Translation(Objective):
    """Cross-entropy of the target tokens, averaged over those of the global batch."""

    METRICS = ("target_tokens", "filled")

    def __init__(
        self,
        *,
        encoder: EncoderNetwork,
        decoder: LaserDecoder,
        end_token: int,
        samples: int = 0,
    ) -> None:
        """Takes the model.

        Args:
          encoder: any dropout of it must be replayable.
          decoder: for its vectors.
          end_token: the id that a target ends with, and that the decoder reads first.
          samples: tokens of the softmax, see `sampled_softmax`; 0: the whole vocabulary.
        """
        super().__init__({"encoder": encoder, "decoder": decoder}, features=LASER_FEATURES)
        self._encoder, self._decoder = encoder, decoder
        self._end_token, self._samples = end_token, samples

    def tables_read(self, batch, step: tf.Tensor) -> Tables:
        targets = batch["targets"]
        read = [
            (self._encoder.get_embedding_table(), self._encoder.rows(batch)),
            (self._decoder.get_embedding_table(), previous_tokens(targets, self._end_token)),
        ]
        if self._samples:
            ids = tf.concat([tf.reshape(targets, [-1]), self._draw(step)], axis=0)
            read.append((self._decoder.output_table, ids))
        return read

    def loss(self, batch, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        targets = batch["targets"]
        vectors = self._encoder(batch, training=True)["pooled_output"]
        previous = previous_tokens(targets, self._end_token)
        states = self._decoder((vectors, batch["target_language"], previous))
        losses, hits = self._predict(states, targets, step)
        is_token = tf.cast(targets != 0, tf.float32)
        total = sum_over_replicas([tf.reduce_sum(is_token)])[0]
        return tf.reduce_sum(losses * is_token) / total, tf.reduce_sum(hits * is_token) / total

    def _predict(self, states, targets, step) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns cross-entropy and correctness (1 or 0) of each token, shaped as `targets`."""
        decoder = self._decoder
        if not self._samples:
            return token_losses(decoder.logits(states), targets)
        losses, hits = sampled_softmax(
            tf.reshape(tf.cast(states, tf.float32), [-1, states.shape[-1]]),
            tf.reshape(targets, [-1]),
            decoder.output_table,
            decoder.output_bias,
            self._draw(step),
        )
        return tf.reshape(losses, tf.shape(targets)), tf.reshape(hits, tf.shape(targets))

    def _draw(self, step: tf.Tensor) -> tf.Tensor:
        # All replicas draw the same tokens, different ones at each step.
        seed = tf.stack([step, tf.constant(_SAMPLES_SEED, tf.int64)])
        return draw_uniform(self._samples, self._decoder.vocab_size, seed)

    def observe(self, batch, loss: tf.Tensor, accuracy: tf.Tensor) -> None:
        """Updates the target tokens of a step, and the share of tokens that are not padding."""
        source, target = batch["input_word_ids"] != 0, batch["targets"] != 0
        counts = [tf.math.count_nonzero(side, dtype=tf.float32) for side in (source, target)]
        places = tf.cast(tf.size(source) + tf.size(target), tf.float32)
        in_source, in_target, places = sum_over_replicas([*counts, places])
        self.metrics["target_tokens"].update_state(in_target)
        self.metrics["filled"].update_state((in_source + in_target) / places)


def token_losses(logits: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns float32 cross-entropy, in nats, and correctness (1 or 0), shaped as `targets`.

    Args:
      logits: float32 `[batch, length, vocab_size]`.
      targets: int32 `[batch, length]`.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    hits = tf.argmax(logits, axis=-1, output_type=tf.int32) == targets
    return losses, tf.cast(hits, tf.float32)
