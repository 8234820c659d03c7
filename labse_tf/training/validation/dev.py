"""Measures retrieval on dev pairs, by language, while the dual encoder is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import orbit
import tensorflow as tf

from labse_tf.data.dev_pairs import BytesPair
from labse_tf.evaluation.bitext import accuracies, all_cosines
from labse_tf.model.dual_encoder import embed
from labse_tf.tokenization.protocol import Tokenizer
from labse_tf.training.distribution import cross_replica_concat
from labse_tf.training.runs.best import DEV_PAIRS

LABEL = DEV_PAIRS
_TOKENS_PER_BATCH = 8192


class DevEvaluator(orbit.AbstractEvaluator):
    """Retrieves each sentence's translation from the pool of its language, in both directions."""

    def __init__(
        self,
        *,
        strategy: tf.distribute.Strategy,
        encoder,
        tokenizer: Tokenizer,
        pools: dict[str, list[BytesPair]],
        lengths: Sequence[int],
    ) -> None:
        """Tokenises the pairs.

        Args:
          strategy: the strategy under which the encoder was created.
          encoder: from `build_encoder`.
          tokenizer: the tokeniser of its vocabulary.
          pools: pairs by language, as `read_dev_pairs` returns them.
          lengths: ascending, tokens: sentences are padded to the smallest that holds them, and
            truncated to the last one.
        """
        self._strategy = strategy
        self._encoder = encoder
        self._tokenizer = tokenizer
        # Many languages share English sentences; each is embedded once.
        sentences = {text: None for pool in pools.values() for pair in pool for text in pair}
        row_of = {text: row for row, text in enumerate(sentences)}
        self._rows = {
            language: np.array([[row_of[text] for text in pair] for pair in pool])
            for language, pool in pools.items()
        }
        self._tokens = tokenizer(tf.constant(list(sentences)))
        longest = np.minimum(self._tokens.row_lengths().numpy() + 2, lengths[-1])
        self._lengths = np.asarray(lengths)[np.searchsorted(lengths, longest)]

    def evaluate(self, num_steps: tf.Tensor) -> dict:
        """Returns `{"retrieval": {accuracy, to_english, from_english, pairs, by_language}}`.

        Accuracies are fractions of the pairs; `accuracy` is the mean of both directions. Overall
        accuracies are means over languages. `num_steps` is ignored: all pairs are measured.
        """
        vectors = self.embed_all()
        by_language = {
            language: _measure(vectors[rows[:, 0]], vectors[rows[:, 1]])
            for language, rows in self._rows.items()
        }
        means = {
            name: _mean([measured[name] for measured in by_language.values()])
            for name in ("accuracy", "to_english", "from_english")
        }
        pairs = sum(measured["pairs"] for measured in by_language.values())
        return {LABEL: {**means, "pairs": pairs, "by_language": by_language}}

    def embed_all(self) -> np.ndarray:
        """Returns float32 `[sentences, dim]`, unit rows, one per distinct sentence of the pools."""
        parts, order = [], []
        for length, rows, padded_rows in self._batches():
            packed = self._tokenizer.pack([tf.gather(self._tokens, padded_rows)], length)
            parts.append(self._embed(packed).numpy()[: len(rows)])
            order.append(rows)
        vectors = np.concatenate(parts)
        return vectors[np.argsort(np.concatenate(order))]

    def _batches(self) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yields length, rows, and rows padded so that all batches of a length have one shape."""
        replicas = self._strategy.num_replicas_in_sync
        for length in np.unique(self._lengths):
            rows = np.flatnonzero(self._lengths == length)
            most = max(1, _TOKENS_PER_BATCH // length // replicas)
            size = replicas * min(most, -(-len(rows) // replicas))
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                yield int(length), some, np.pad(some, (0, size - len(some)), mode="edge")

    @tf.function
    def _embed(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        """Embeds a batch, split over the replicas; returns `[rows, dim]` on every worker."""
        everywhere = self._strategy.run(self._embed_part, args=(batch,))
        return self._strategy.experimental_local_results(everywhere)[0]

    def _embed_part(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        replicas, index = context.num_replicas_in_sync, context.replica_id_in_sync_group

        def part(tensor):
            split = tf.reshape(tensor, [replicas, tensor.shape[0] // replicas, tensor.shape[1]])
            return split[index]

        vectors = embed(self._encoder, tf.nest.map_structure(part, batch), training=False)
        return cross_replica_concat(vectors)


def _measure(english: np.ndarray, foreign: np.ndarray) -> dict[str, float]:
    found = accuracies(all_cosines(foreign, english))
    return {"accuracy": _mean(list(found.values())), **found, "pairs": len(english)}


def _mean(values: list[float]) -> float:
    return round(float(np.mean(values)), 6)
