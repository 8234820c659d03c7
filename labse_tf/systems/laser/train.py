"""Trains LASER: an encoder whose vectors a decoder translates (arXiv 1812.10464, section 3)."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.config import BILSTM
from labse_tf.errors import InputError
from labse_tf.model.encoder import build_encoder, precision
from labse_tf.model.protocol import INPUT_NAMES, EncoderNetwork
from labse_tf.systems.laser import perplexity
from labse_tf.systems.laser.batches import check_sources, find_directions, laser_batches
from labse_tf.systems.laser.config import LaserRun
from labse_tf.systems.laser.decoder import LaserDecoder
from labse_tf.systems.laser.objective import Translation
from labse_tf.training.fit import Stage, fit
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.initial_weights import start_from
from labse_tf.training.runs.run_dir import Origin, RunDir
from labse_tf.training.validation import Validation


def train(
    config: LaserRun,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    *,
    init: Origin | None = None,
) -> None:
    """Trains encoder and decoder, the encoder from `init` or from scratch, or resumes.

    Raises:
      InputError: if there are no pairs, a target language is never a source, or the replicas cannot
        share a batch.
    """
    settings, tokenizer = config.laser, load_tokenizer(run_dir)
    if config.encoder.has_parts:
        raise InputError(
            "'encoder.subwords' and 'ngrams' are for `labse train`", remedy="leave them empty"
        )
    corpora = (settings.targets, config.languages)
    directions = find_directions(
        settings.bitext, settings.target_bitext, *corpora, key="laser.bitext"
    )
    check_sources(directions, settings.targets)
    with strategy.scope():
        tf_keras.utils.set_random_seed(config.seed)
        encoder = build_encoder(config.encoder, compute=config.compute, replayable=True)
        if init is not None:
            start_from(init, {"encoder": encoder}, config, run_dir, strategy)
        with precision(config.compute):
            decoder = build_decoder(config, encoder)
    end_token = tokenizer.special_tokens["end_of_segment_id"]
    parts = {"encoder": encoder, "decoder": decoder}

    validation = None
    if settings.held_out or settings.target_held_out:
        held_out = find_directions(
            settings.held_out, settings.target_held_out, *corpora, key="laser.held_out"
        )
        evaluator = perplexity.PerplexityEvaluator(
            **parts,
            strategy=strategy,
            end_token=end_token,
            held_out=perplexity.read_held_out(settings, tokenizer, held_out),
        )
        validation = Validation(
            evaluator,
            settings.held_out_interval,
            best=tf.train.Checkpoint(**parts),
            measure=(perplexity.TASK, "loss"),
            lower_is_better=True,
        )

    def batches(step: int) -> tf.data.Dataset:
        replicas = strategy.num_replicas_in_sync
        order = {"seed": config.seed, "replicas": replicas, "step": step}
        return laser_batches(settings, tokenizer, directions, **order)

    stage = Stage(
        description="train the encoder by translation",
        steps=settings.steps,
        batch_size=0,
        optimizer=settings.optimizer,
        loop=settings.loop,
        checkpoints=run_dir.checkpoints,
    )
    objective = Translation(**parts, end_token=end_token, samples=settings.sampled_softmax)
    fit(objective, batches, stage, run_dir, strategy, validation)


def build_decoder(config: LaserRun, encoder: EncoderNetwork) -> LaserDecoder:
    """Returns the decoder for vectors of `encoder`, with its variables created."""
    settings = config.encoder
    decoder = LaserDecoder(
        config.laser,
        vocab_size=settings.vocab_size,
        token_size=settings.token_size,
        rescale=settings.network != BILSTM,
    )
    ids = tf.ones([1, 4], tf.int32)
    vectors = encoder(dict.fromkeys(INPUT_NAMES, ids))["pooled_output"]
    decoder((vectors, tf.zeros([1], tf.int32), ids))
    return decoder
