"""Measures MLM, TLM and CMLM on held-out text, by language."""

from __future__ import annotations

import numpy as np
import orbit
import tensorflow as tf

from labse_tf.data.held_out import HeldOut
from labse_tf.model.slots import Slots, token_states


class HeldOutEvaluator(orbit.AbstractEvaluator):
    """Loss and accuracy on masked tokens of held-out sequences, always with the full softmax."""

    def __init__(
        self, *, strategy, encoder, head, examples: dict[str, HeldOut], slots: Slots | None = None
    ) -> None:
        """Prepares to measure.

        Args:
          strategy: the strategy under which encoder and head were created.
          encoder: from `build_encoder`.
          head: from `build_mlm_head`.
          examples: from `read_held_out`, or with slots from `read_held_out_neighbours`.
          slots: those of CMLM.
        """
        self._slots = slots
        self._strategy = strategy
        self._encoder = encoder
        self._head = head
        self._examples = examples

    def evaluate(self, num_steps: tf.Tensor) -> dict:
        """Returns `{task: {loss, accuracy, tokens, by_language: {code: {...}}}}`.

        The loss is in nats per token. `num_steps` is ignored: all examples are measured.
        """
        return {task: self._measure(examples) for task, examples in self._examples.items()}

    def _measure(self, examples: HeldOut) -> dict:
        batches = examples.batches(self._head.bias.shape[0])
        rows = np.concatenate([self._sums(batch) for batch in batches])
        rows = rows[: len(examples.languages)]
        by_language = {
            str(language): _means(rows[examples.languages == language])
            for language in np.unique(examples.languages)
        }
        return {**_means(rows), "by_language": by_language}

    def _sums(self, batch: dict[str, np.ndarray]) -> np.ndarray:
        # Each replica computes the same; a few hundred sentences are not worth splitting.
        tensors = tf.nest.map_structure(tf.constant, batch)
        sums = self._strategy.run(self._row_sums, args=(tensors,))
        return self._strategy.experimental_local_results(sums)[0].numpy()

    @tf.function
    def _row_sums(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns loss, correct predictions and number of masked tokens per row: `[rows, 3]`."""
        sequence = token_states(self._encoder, batch, slots=self._slots, training=False)
        logits = tf.cast(self._head(sequence, batch["masked_positions"]), tf.float32)
        ids, weights = batch["masked_ids"], batch["masked_weights"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=ids, logits=logits)
        hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == ids, tf.float32)
        sums = [tf.reduce_sum(one * weights, axis=1) for one in (losses, hits)]
        return tf.stack([*sums, tf.reduce_sum(weights, axis=1)], axis=1)


def _means(rows: np.ndarray) -> dict[str, float]:
    loss, hits, tokens = rows.sum(axis=0, dtype=np.float64)
    return {"loss": loss / tokens, "accuracy": hits / tokens, "tokens": int(tokens)}
