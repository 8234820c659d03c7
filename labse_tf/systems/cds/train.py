"""Trains a translator on the noisy corpus, then tunes it on trusted pairs; both are kept."""

from __future__ import annotations

import functools

import tensorflow as tf
import tf_keras

from labse_tf.model.encoder import replayable_dropout
from labse_tf.systems.cds.batches import translation_batches
from labse_tf.systems.cds.config import CdsRun
from labse_tf.systems.cds.objective import TranslatorLoss
from labse_tf.systems.cds.translator import build_translator
from labse_tf.training.fit import Stage, fit
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.run_dir import RunDir

NOISY, TRUSTED = "noisy", "trusted"


def train(config: CdsRun, run_dir: RunDir, strategy: tf.distribute.Strategy) -> None:
    """Trains both translators, or resumes where the run was stopped.

    Their checkpoints are in `checkpoints/noisy` and `checkpoints/trusted`. The second translator
    starts from the weights of the first, with a fresh optimiser.
    """
    settings = config.cds
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope(), replayable_dropout():
        tf_keras.utils.set_random_seed(config.seed)
        translator = build_translator(settings.translator, len(tokenizer.tokens))
    for number, (name, inputs, steps, optimizer) in enumerate(
        (
            (NOISY, settings.noisy, settings.noisy_steps, settings.noisy_optimizer),
            (TRUSTED, settings.trusted, settings.trusted_steps, settings.trusted_optimizer),
        )
    ):
        tf_keras.utils.set_random_seed(config.seed + number)
        stage = Stage(
            description=f"train the translator on {name} pairs",
            steps=steps,
            batch_size=settings.batch_size,
            optimizer=optimizer,
            loop=settings.loop,
            checkpoints=run_dir.checkpoints / name,
            number=number,
        )
        batches = functools.partial(_batches, config, tokenizer, name, inputs)
        fit(TranslatorLoss(translator), batches, stage, run_dir, strategy)


def _batches(config: CdsRun, tokenizer, name: str, inputs: list[str], step: int) -> tf.data.Dataset:
    return translation_batches(
        config.cds,
        tokenizer,
        inputs,
        key=f"cds.{name}",
        languages=config.languages,
        seed=config.seed,
        step=step,
    )
