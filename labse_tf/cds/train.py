"""Trains a translator on the noisy corpus, then tunes it on trusted pairs; keeps both."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from labse_tf.config import Config
from labse_tf.model.dropout import dropout_generators, replayable_dropout
from labse_tf.training.loop import resumable
from labse_tf.training.loop.trainer import Trainer, distribute
from labse_tf.training.optimizer.adamw import build_optimizer
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.run_dir import RunDir
from labse_tf.translation.batches import translation_batches
from labse_tf.translation.model import build_translator, token_log_likelihoods

NOISY, TRUSTED = "noisy", "trusted"


class TranslatorTrainer(Trainer):
    """Cross-entropy of the target's tokens, a mean over all those of the global batch."""

    def __init__(self, *, translator, **kwargs) -> None:
        super().__init__(
            variables=translator.trainable_variables,
            generators=dropout_generators(translator),
            **kwargs,
        )
        self._translator = translator

    def replica_loss(self, batch) -> tuple[tf.Tensor, tf.Tensor]:
        targets = batch["targets"]
        logits = self._translator(batch, training=True)
        is_token = tf.cast(targets != 0, tf.float32)
        hits = tf.cast(tf.argmax(logits, axis=-1, output_type=tf.int32) == targets, tf.float32)
        total = tf.reduce_sum(is_token)
        replicas = tf.distribute.get_replica_context()
        if replicas.num_replicas_in_sync > 1:
            total = replicas.all_reduce("SUM", total)
        loss = -tf.reduce_sum(token_log_likelihoods(logits, targets))
        return loss / total, tf.reduce_sum(hits * is_token) / total


def train(config: Config, run_dir: RunDir, strategy: tf.distribute.Strategy) -> None:
    """Trains both translators, or goes on where the run was stopped.

    Their checkpoints lie in `checkpoints/noisy` and `checkpoints/trusted`. The second begins with
    the weights of the first and an optimiser of its own.
    """
    settings = config.contrastive
    tokenizer = load_tokenizer(run_dir)
    with strategy.scope(), replayable_dropout():
        tf_keras.utils.set_random_seed(config.seed)
        translator = build_translator(settings.translator, len(tokenizer.tokens))
    for stage, (name, inputs, steps, optimizer_config) in enumerate(
        (
            (NOISY, settings.noisy, settings.noisy_steps, settings.noisy_optimizer),
            (TRUSTED, settings.trusted, settings.trusted_steps, settings.trusted_optimizer),
        )
    ):
        tf_keras.utils.set_random_seed(config.seed + stage)
        with strategy.scope():
            optimizer = build_optimizer(optimizer_config, steps=steps)
            optimizer.build(translator.trainable_variables)
        _run(config, run_dir, strategy, tokenizer, translator, optimizer, name, inputs, stage)


def _run(config, run_dir, strategy, tokenizer, translator, optimizer, name, inputs, stage) -> None:
    settings = config.contrastive

    def make_trainer(steps_done: int) -> TranslatorTrainer:
        dataset = distribute(
            strategy,
            lambda: translation_batches(
                config, tokenizer, inputs, key=f"contrastive.{name}", skip=steps_done
            ),
            settings.batch_size,
        )
        return TranslatorTrainer(
            translator=translator,
            strategy=strategy,
            optimizer=optimizer,
            clip_norm=getattr(settings, f"{name}_optimizer").clip_norm,
            dataset=dataset,
        )

    resumable.run(
        description=f"train the translator on {name} pairs",
        strategy=strategy,
        make_trainer=make_trainer,
        optimizer=optimizer,
        checkpoint=tf.train.Checkpoint(translator=translator, optimizer=optimizer),
        checkpoint_dir=str(run_dir.checkpoints / name),
        run_dir=run_dir,
        steps=getattr(settings, f"{name}_steps"),
        loop=settings.loop,
        stage=stage,
    )
