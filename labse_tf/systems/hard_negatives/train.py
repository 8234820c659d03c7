"""Trains the weaker dual encoder, a deep averaging network, that finds hard negatives."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.data.pairs import pair_batches
from labse_tf.model.encoder import replayable_dropout
from labse_tf.systems.hard_negatives.averaging_encoder import AveragingEncoder
from labse_tf.systems.hard_negatives.config import NegativesRun
from labse_tf.training.dual_encoder import on_strategy, stage_of
from labse_tf.training.fit import fit
from labse_tf.training.objectives import DualEncoder
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.run_dir import RunDir

# A folder below checkpoints/, so that the run is not mistaken for that of a full encoder.
CHECKPOINTS = "averaging"


def train(config: NegativesRun, run_dir: RunDir, strategy: tf.distribute.Strategy) -> None:
    """Trains the encoder of `config.negatives`, or resumes where the run was stopped."""
    settings = config.train
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope(), replayable_dropout():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = AveragingEncoder(config.negatives.encoder, vocab_size=config.encoder.vocab_size)
    settings = on_strategy(settings, strategy)
    order = {"languages": config.languages, "seed": config.seed}
    fit(
        DualEncoder(encoder, settings),
        pair_batches(settings, tokenizer, **order, section="train"),
        stage_of(settings, "train the averaging encoder", run_dir.checkpoints / CHECKPOINTS),
        run_dir,
        strategy,
    )
