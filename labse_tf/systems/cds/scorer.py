"""Scores pairs with the two translators of a run, or translates texts with one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.systems.cds.config import CdsRun
from labse_tf.systems.cds.train import (
    STAGES,
    TRANSLATION_FEATURES,
    build_translator,
    encode_pairs,
    token_log_likelihoods,
)
from labse_tf.systems.laser.translators import LENGTH_PENALTY, Translator
from labse_tf.training.runs.checkpoints import load_tokenizer, newest_whole
from labse_tf.training.runs.run_dir import RunDir, open_existing

# Tokens per side of a batch. Memory goes mostly to the logits: 4 bytes for each token of the batch
# and each vocabulary entry (0.5 GB for 32,000 entries).
_TOKENS_PER_BATCH = 4096
# A translation has at most this many tokens more than its source: the Model Garden's rule.
_MORE_TOKENS = 50


def cds_scores(noisy: np.ndarray, trusted: np.ndarray) -> np.ndarray:
    """Returns the score of each pair from its log-likelihoods per target token: `[n]`, in nats.

    `(log P(y | x; trusted) - log P(y | x; noisy)) / |y|`: the noise score of Wang et al. 2018
    with the opposite sign, so that higher is better.
    """
    return trusted - noisy


class TranslatorScorer:
    """Log-likelihoods of pairs under the two translators of a `labse corpus train-cds` run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Loads the translators; InputError if the run has not reached its trusted pairs."""
        run_dir = open_existing(path)
        self._lengths = run_dir.read_config(CdsRun).cds.bucket_lengths
        self._tokenizer = load_tokenizer(run_dir)
        size = len(self._tokenizer.tokens)
        self._translators = [load_translator(run_dir, name, size) for name in STAGES]
        # Dynamic shapes: fixed ones would need a trace per length, and padding to full batches.
        self._run = tf.function(self._log_likelihoods, input_signature=[TRANSLATION_FEATURES])

    def log_likelihoods(self, pairs: Sequence[tuple[str, str, str]]) -> np.ndarray:
        """Returns float32 `[n, 2]`: nats per target token, of the noisy and the trusted one.

        Pairs are `(source, target, code of the target's language)`. Sides longer than the last of
        the run's `bucket_lengths` are truncated.
        """
        result = np.zeros((len(pairs), 2), np.float32)
        if not pairs:
            return result
        columns = [tf.constant(column) for column in zip(*pairs, strict=True)]
        ids = encode_pairs(self._tokenizer, *columns, self._lengths[-1:])
        ids = {name: tensor.numpy() for name, tensor in ids.items()}
        used = np.maximum(*((array != 0).sum(axis=1) for array in ids.values()))
        buckets = np.searchsorted(self._lengths, used)
        for bucket in np.unique(buckets):
            length, members = self._lengths[bucket], np.flatnonzero(buckets == bucket)
            size = max(1, _TOKENS_PER_BATCH // length)
            for rows in np.split(members, range(size, len(members), size)):
                batch = {name: tf.constant(array[rows, :length]) for name, array in ids.items()}
                result[rows] = self._run(batch).numpy()
        return result

    def _log_likelihoods(self, batch: dict[str, tf.Tensor]) -> tf.Tensor:
        logits = [translator(batch, training=False) for translator in self._translators]
        return tf.stack([mean_log_likelihoods(one, batch["targets"]) for one in logits], axis=1)


def mean_log_likelihoods(logits: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Returns log P(target | source) per target token, [SEP] included: float32 `[batch]`, in nats.

    The arguments are those of `token_log_likelihoods`, with at least one token per row.
    """
    tokens = tf.reduce_sum(tf.cast(targets != 0, tf.float32), axis=1)
    return tf.reduce_sum(token_log_likelihoods(logits, targets), axis=1) / tokens


def load_translator(run_dir: RunDir, name: str, vocab_size: int, **search):
    """Returns a translator of a run, "noisy" or "trusted"; InputError if the run lacks it yet."""
    checkpoint = newest_whole(run_dir.checkpoints / name)
    if checkpoint is None:
        problem = f"the run has no checkpoint of the translator tuned on {name} pairs"
        remedy = "run `labse corpus train-cds` again to continue training"
        raise InputError(problem, path=run_dir.path, remedy=remedy)
    translator = build_translator(run_dir.read_config(CdsRun).cds.translator, vocab_size, **search)
    restored = tf.train.Checkpoint(translator=translator).restore(checkpoint)
    restored.assert_existing_objects_matched().expect_partial()
    return translator


class TransformerTranslator(Translator):
    """The translator of `labse corpus train-cds`, from English."""

    def __init__(self, run_dir: RunDir, *, name: str, beam_size: int) -> None:
        config = run_dir.read_config(CdsRun)
        super().__init__(run_dir, longest=config.cds.bucket_lengths[-1], beam_size=beam_size)
        self.languages = [code for code in config.languages if code != "en"]
        search = {"beam_size": beam_size, "alpha": LENGTH_PENALTY, "eos_id": self._end}
        search["extra_decode_length"] = _MORE_TOKENS
        size = len(self._tokenizer.tokens)
        self._translator = load_translator(run_dir, name, size, **search)

    def _inputs(self, tokens, language, length):
        tags = self._tokenizer(tf.fill([tokens.nrows()], language))
        length += int(tags.row_lengths()[0]) + 1
        packed = self._tokenizer.pack([tags, tokens], length)["input_word_ids"]
        return packed, tf.zeros_like(packed)

    def _search(self, source, language, most):
        return self._translator({"inputs": source}, training=False)["outputs"]
