"""Builds the validation that a section of the configuration asks for."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from labse_tf.config import TrainConfig
from labse_tf.data.dev_pairs import read_dev_pairs
from labse_tf.errors import InputError
from labse_tf.model.protocol import EncoderNetwork
from labse_tf.tokenization.protocol import Tokenizer
from labse_tf.training.run_embedder import RunEmbedder
from labse_tf.training.validation import dev
from labse_tf.training.validation.course import Validation
from labse_tf.training.validation.tasks import TaskEvaluator, Together, label_tasks


def validation_of(
    settings: TrainConfig,
    *,
    languages: Sequence[str],
    strategy: tf.distribute.Strategy,
    encoder: EncoderNetwork,
    tokenizer: Tokenizer,
) -> Validation | None:
    """Returns the validation that `settings` ask for, None if they ask for none.

    Args:
      settings: the training settings.
      languages: codes; dev pairs of others are left out. An empty list means all.
      strategy: the run's strategy.
      encoder: the encoder that is trained; the best checkpoint contains it.
      tokenizer: the tokeniser of its vocabulary.

    Raises:
      InputError: if there are no dev pairs, a task does not exist, or its data is missing.
    """
    evaluators, measures, lower = [], {}, set()
    if settings.dev:
        pools = read_dev_pairs(settings, languages)
        made = {"strategy": strategy, "encoder": encoder, "tokenizer": tokenizer}
        lengths = settings.bucket_lengths
        evaluators.append(dev.DevEvaluator(**made, pools=pools, lengths=lengths))
        measures[dev.LABEL] = "accuracy"
    if settings.evaluate:
        tasks = label_tasks(settings.evaluate, taken=tuple(measures))
        embedder = RunEmbedder(encoder, tokenizer, sequence_length=settings.bucket_lengths[-1])
        evaluators.append(TaskEvaluator(tasks, embedder))
        for label, task, _ in tasks:
            measures[label] = task.PRIMARY_METRIC
            if getattr(task, "LOWER_IS_BETTER", False):
                lower.add(label)
    if not evaluators:
        return None
    chosen = settings.best or next(iter(measures))
    if chosen not in measures:
        raise InputError(f"'train.best' is {chosen!r}", remedy=f"choose from {', '.join(measures)}")
    return Validation(
        evaluators[0] if len(evaluators) == 1 else Together(*evaluators),
        settings.dev_interval,
        best=tf.train.Checkpoint(encoder=encoder),
        measure=(chosen, measures[chosen]),
        lower_is_better=chosen in lower,
        patience=settings.patience,
    )
