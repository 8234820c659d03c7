"""Trains the weaker dual encoder, over a deep averaging network, that finds hard negatives."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf
import tf_keras

from labse_tf.config import Config
from labse_tf.data.pairs import pair_batches
from labse_tf.embedder import SortingEncoder
from labse_tf.model.averaging_encoder import AveragingEncoder
from labse_tf.tokenization import Tokenizer
from labse_tf.training import loop, resumable
from labse_tf.training.optimizer import build_optimizer
from labse_tf.training.run_dir import RunDir
from labse_tf.training.train import DualEncoderTrainer, all_inputs

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
        self._tokenizer = _tokenizer(config, run_dir)
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
    tokenizer = _tokenizer(config, run_dir)
    with strategy.scope():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = AveragingEncoder(config.negatives.encoder, vocab_size=config.encoder.vocab_size)
        optimizer = build_optimizer(settings.optimizer, steps=settings.steps)
        optimizer.build(encoder.trainable_variables)

    def make_trainer(steps_done: int) -> AveragingTrainer:
        # Its batches are made as those of the encoder to come, of other settings.
        batches = dataclasses.replace(config, train=settings)
        dataset = loop.distribute(
            strategy,
            lambda: pair_batches(batches, tokenizer, skip=steps_done),
            settings.batch_size,
        )
        return AveragingTrainer(
            encoder=encoder,
            settings=settings,
            strategy=strategy,
            optimizer=optimizer,
            clip_norm=settings.optimizer.clip_norm,
            lazy_embeddings=settings.optimizer.lazy_embeddings,
            dataset=dataset,
        )

    resumable.run(
        description="train the averaging encoder",
        strategy=strategy,
        make_trainer=make_trainer,
        optimizer=optimizer,
        checkpoint=tf.train.Checkpoint(encoder=encoder, optimizer=optimizer),
        checkpoint_dir=str(run_dir.checkpoints / CHECKPOINTS),
        run_dir=run_dir,
        steps=settings.steps,
        loop=settings.loop,
    )


def _tokenizer(config: Config, run_dir: RunDir) -> Tokenizer:
    return Tokenizer(run_dir.vocab_file, max_bytes_per_word=config.tokenizer.max_bytes_per_word)
