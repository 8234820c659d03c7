"""Measures LASER's loss on held-out pairs, by pair of languages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orbit
import tensorflow as tf

from labse_tf.data import texts
from labse_tf.files.corpus_files import BITEXT
from labse_tf.systems.laser.batches import Direction, encode_pairs, features_of
from labse_tf.systems.laser.config import LaserConfig
from labse_tf.systems.laser.decoder import previous_tokens
from labse_tf.systems.laser.objective import token_losses
from labse_tf.tokenization.protocol import Tokenizer

TASK = "translation"
# Of the whole vocabulary, for each token.
_BYTES_OF_LOGITS = 1 << 28

Batch = dict[str, tf.Tensor]


def read_held_out(
    settings: LaserConfig, tokenizer: Tokenizer, directions: Sequence[Direction]
) -> dict[str, list[Batch]]:
    """Returns batches of LASER_FEATURES by the name of the direction.

    They are the first `held_out_size` pairs of each, cut to the last of `bucket_lengths`.
    """
    found: dict[str, list[Batch]] = {}
    for one in directions:
        records = texts.concatenate([texts.records(file) for file in one.files])
        with texts.input_errors():
            some = list(records.batch(settings.held_out_size).take(1))
        if not some:
            raise texts.no_records()
        (serialized,) = some
        sides = texts.parse(BITEXT, serialized)
        source, target = sides if one.target_second else sides[::-1]
        longest = settings.bucket_lengths[-1]
        source, target = encode_pairs(tokenizer, source, target, longest=longest)
        number = settings.targets.index(one.target)
        batches = _cut(source, target, number, vocab_size=len(tokenizer.tokens))
        # Pairs of one name may be in two kinds of corpora.
        found.setdefault(one.name, []).extend(batches)
    return found


def _cut(source, target, language: int, *, vocab_size: int) -> list[Batch]:
    longest = int(target.bounding_shape(axis=1))
    rows = max(1, _BYTES_OF_LOGITS // (4 * longest * vocab_size))
    batches = []
    for start in range(0, source.nrows(), rows):
        sides = [side[start : start + rows].to_tensor() for side in (source, target)]
        batches.append(features_of(*sides, tf.fill([tf.shape(sides[0])[0]], language)))
    return batches


class PerplexityEvaluator(orbit.AbstractEvaluator):
    """Loss and accuracy of the target tokens, always with the full softmax."""

    def __init__(
        self, *, strategy, encoder, decoder, end_token: int, held_out: dict[str, list[Batch]]
    ) -> None:
        """Prepares to measure.

        Args:
          strategy: the strategy under which encoder and decoder were created.
          encoder: of the vectors.
          decoder: a `LaserDecoder`.
          end_token: as for `Translation`.
          held_out: from `read_held_out`.
        """
        self._strategy, self._encoder, self._decoder = strategy, encoder, decoder
        self._end_token, self._held_out = end_token, held_out

    def evaluate(self, num_steps: tf.Tensor) -> dict:
        """Returns `{"translation": {loss, perplexity, accuracy, tokens, by_pair: {name: {...}}}}`.

        The loss is in nats per token, [SEP] included; the perplexity is e to its power. `num_steps`
        is ignored: all pairs are measured.
        """
        sums = {
            name: np.sum([self._sums(batch) for batch in batches], axis=0)
            for name, batches in self._held_out.items()
        }
        by_pair = {name: _means(one) for name, one in sums.items()}
        return {TASK: {**_means(np.sum(list(sums.values()), axis=0)), "by_pair": by_pair}}

    def _sums(self, batch: Batch) -> np.ndarray:
        # Each replica computes the same; a few hundred sentences are not worth splitting.
        sums = self._strategy.run(self._batch_sums, args=(batch,))
        return self._strategy.experimental_local_results(sums)[0].numpy().astype(np.float64)

    @tf.function(reduce_retracing=True)
    def _batch_sums(self, batch: Batch) -> tf.Tensor:
        """Returns loss, correct predictions and number of tokens: `[3]`."""
        targets = batch["targets"]
        vectors = self._encoder(batch, training=False)["pooled_output"]
        previous = previous_tokens(targets, self._end_token)
        states = self._decoder((vectors, batch["target_language"], previous))
        losses, hits = token_losses(self._decoder.logits(states), targets)
        is_token = tf.cast(targets != 0, tf.float32)
        return tf.stack([tf.reduce_sum(one * is_token) for one in (losses, hits, is_token)])


def _means(sums: np.ndarray) -> dict[str, float]:
    loss, hits, tokens = sums
    return {
        "loss": loss / tokens,
        "perplexity": float(np.exp(loss / tokens)),
        "accuracy": hits / tokens,
        "tokens": int(tokens),
    }
