"""Trains the weaker dual encoder, over a deep averaging network, that finds hard negatives."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import tensorflow as tf
import tf_keras

from labse_tf.config import Config
from labse_tf.embedding.embedder import SortingEncoder
from labse_tf.model.averaging_encoder import AveragingEncoder
from labse_tf.model.dropout import replayable_dropout
from labse_tf.training.dual_encoder import DualEncoderTrainer, all_inputs, fit
from labse_tf.training.optimizer.adamw import build_optimizer
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.run_dir import RunDir

# A folder below checkpoints/, so that nobody takes the run for one of a whole encoder.
CHECKPOINTS = "averaging"


class AveragingTrainer(DualEncoderTrainer):
    """The dual encoder's trainer; a batch reads embeddings of bigrams, too."""

    def rows_read(self, batch) -> list[tuple[tf.Variable, tf.Tensor]]:
        return [(self._encoder.get_embedding_table(), self._encoder.rows(all_inputs(batch)))]


class AveragingEmbedder(SortingEncoder):
    """Embeds text with a run's encoder."""

    def __init__(self, run_dir: RunDir, checkpoint: str) -> None:
        """Loads the weights of `checkpoint`."""
        config = run_dir.config
        self._tokenizer = load_tokenizer(run_dir)
        self._network = AveragingEncoder(
            config.negatives.encoder, vocab_size=config.encoder.vocab_size
        )
        tf.train.Checkpoint(encoder=self._network).restore(
            checkpoint
        ).assert_existing_objects_matched().expect_partial()
        self.dim = config.negatives.encoder.hidden_size
        self.sequence_length = config.negatives.train.bucket_lengths[-1]

    def _tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer(texts)

    def _embed(self, tokens: tf.RaggedTensor, length: int) -> np.ndarray:
        return self._network(self._tokenizer.pack([tokens], length))["pooled_output"].numpy()


def train(config: Config, run_dir: RunDir, strategy: tf.distribute.Strategy) -> None:
    """Trains the encoder of `config.negatives`, or goes on where the run was stopped."""
    settings = config.negatives.train
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope(), replayable_dropout():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = AveragingEncoder(config.negatives.encoder, vocab_size=config.encoder.vocab_size)
        optimizer = build_optimizer(settings.optimizer, steps=settings.steps)
        optimizer.build(encoder.trainable_variables)

    fit(
        functools.partial(AveragingTrainer, settings=settings),
        "train the averaging encoder",
        encoder=encoder,
        tokenizer=tokenizer,
        optimizer=optimizer,
        # Its batches are made as those of the encoder to come, of other settings.
        config=dataclasses.replace(config, train=settings),
        run_dir=run_dir,
        strategy=strategy,
        checkpoint_dir=run_dir.checkpoints / CHECKPOINTS,
    )
