"""Scores pairs with the two translators of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.systems.cds.batches import encode_pairs
from labse_tf.systems.cds.config import CdsRun
from labse_tf.systems.cds.train import NOISY, TRUSTED
from labse_tf.systems.cds.translator import build_translator, mean_log_likelihoods
from labse_tf.training.runs.checkpoints import load_tokenizer, newest_whole
from labse_tf.training.runs.run_dir import RunDir, open_existing

# Tokens per side of a batch. Memory goes mostly to the logits: 4 bytes for each token of the batch
# and each vocabulary entry (0.5 GB for 32,000 entries).
_TOKENS_PER_BATCH = 4096


def cds_scores(noisy: np.ndarray, trusted: np.ndarray) -> np.ndarray:
    """Returns the score of each pair: `[n]`, nats per target token.

    `(log P(y | x; trusted) - log P(y | x; noisy)) / |y|`: the noise score of Wang et al. 2018
    with the opposite sign, so that higher is better.

    Args:
      noisy: `[n]` log-likelihoods per target token, of the translator trained on noisy pairs.
      trusted: `[n]`, of the same translator after tuning on trusted pairs.
    """
    return trusted - noisy


class TranslatorScorer:
    """Log-likelihoods of pairs under the two translators of a `labse corpus train-cds` run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Loads the translators.

        Args:
          path: the run dir.

        Raises:
          InputError: if it is not a run dir, or the run has not reached its trusted pairs.
        """
        run_dir = open_existing(path)
        config = run_dir.read_config(CdsRun)
        self._lengths = config.cds.bucket_lengths
        self._tokenizer = load_tokenizer(run_dir)
        vocab_size = len(self._tokenizer.tokens)
        self._translators = [_load(run_dir, config, vocab_size, name) for name in (NOISY, TRUSTED)]
        # Dynamic shapes: fixed ones would need a trace per length, and padding to full batches.
        ids = tf.TensorSpec([None, None], tf.int32)
        self._run = tf.function(
            self._log_likelihoods, input_signature=[{"inputs": ids, "targets": ids}]
        )

    def log_likelihoods(self, pairs: Sequence[tuple[str, str, str]]) -> np.ndarray:
        """Returns float32 `[n, 2]`: nats per target token, of the noisy and the trusted one.

        Sides longer than the last of the run's `bucket_lengths` are truncated.

        Args:
          pairs: `(source, target, code of the target's language)`.
        """
        result = np.zeros((len(pairs), 2), np.float32)
        if not pairs:
            return result
        columns = [tf.constant(column) for column in zip(*pairs, strict=True)]
        ids = encode_pairs(self._tokenizer, *columns, self._lengths[-1:])
        ids = {name: tensor.numpy() for name, tensor in ids.items()}
        for length, rows in self._batches(ids):
            batch = {name: tf.constant(array[rows, :length]) for name, array in ids.items()}
            result[rows] = self._run(batch).numpy()
        return result

    def _batches(self, ids: dict[str, np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """Yields `(bucket length, row indices)`."""
        used = np.maximum(*((array != 0).sum(axis=1) for array in ids.values()))
        buckets = np.searchsorted(self._lengths, used)
        for bucket in np.unique(buckets):
            length = self._lengths[bucket]
            members = np.flatnonzero(buckets == bucket)
            size = _rows_a_batch(length)
            for start in range(0, len(members), size):
                yield length, members[start : start + size]

    def _log_likelihoods(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        values = [
            mean_log_likelihoods(translator(batch, training=False), batch["targets"])
            for translator in self._translators
        ]
        return tf.stack(values, axis=1)


def _rows_a_batch(length: int) -> int:
    return max(1, _TOKENS_PER_BATCH // length)


def _load(run_dir: RunDir, config: CdsRun, vocab_size: int, name: str):
    checkpoint = newest_whole(run_dir.checkpoints / name)
    if checkpoint is None:
        raise InputError(
            f"the run has no checkpoint of the translator tuned on {name} pairs",
            path=run_dir.path,
            remedy="run `labse corpus train-cds` again to continue training",
        )
    translator = build_translator(config.cds.translator, vocab_size)
    restored = tf.train.Checkpoint(translator=translator).restore(checkpoint)
    restored.assert_existing_objects_matched().expect_partial()
    return translator
