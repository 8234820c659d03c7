"""Pre-training: MLM + TLM, in stages of growing depth (LaBSE, section 3.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers, networks

from labse_tf.config import Config
from labse_tf.data.held_out import read_held_out
from labse_tf.data.pretraining import pretraining_batches, source_files
from labse_tf.model.encoder import build_encoder
from labse_tf.model.mlm_head import build_mlm_head, trained_variables
from labse_tf.model.stacking import stack, stage_depths
from labse_tf.training.loop import resumable
from labse_tf.training.loop.trainer import distribute
from labse_tf.training.mlm_trainer import MlmTrainer
from labse_tf.training.optimizer.adamw import build_optimizer
from labse_tf.training.runs.checkpoints import load_tokenizer
from labse_tf.training.runs.initial_weights import restore, write_report
from labse_tf.training.runs.run_dir import Origin, RunDir
from labse_tf.training.validation.course import Validation
from labse_tf.training.validation.held_out import HeldOutEvaluator


def first_depth(config: Config) -> int:
    """Returns the layers of the first stage's encoder."""
    return _depths(config)[0]


def pretrain(
    config: Config,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    *,
    init: Origin | None = None,
) -> None:
    """Goes through the stages, each from copies of the last one's layers; resumes inside any.

    The stages' checkpoints lie in `checkpoints/stage_1`, `stage_2`, ... The head is carried from
    stage to stage, the optimiser starts afresh. The first stage starts from copies of the layers
    of `init`, if there is one.
    """
    tokenizer = load_tokenizer(run_dir)
    held_out = read_held_out(config, tokenizer) if config.pretrain.held_out else {}
    source = None if init is None else _restore_origin(config, run_dir, strategy, init)
    for stage, depth in enumerate(_depths(config)):
        model = _build(config, strategy, depth, seed=config.seed + stage)
        if source is not None:
            with strategy.scope():
                stack(source.encoder, model.encoder)
                model.head.set_weights(source.head.get_weights())
        # Nothing holds the last stage any more: a large one would not fit beside this.
        source = model
        _run_stage(config, run_dir, strategy, tokenizer, model, stage, held_out)


class _Model(NamedTuple):
    encoder: networks.BertEncoderV2
    head: layers.MaskedLM

    @property
    def variables(self) -> list[tf.Variable]:
        return trained_variables(self.encoder, self.head)


def _depths(config: Config) -> list[int]:
    return stage_depths(config.encoder.num_layers, len(config.pretrain.stage_steps))


def _build(config: Config, strategy, depth: int, *, seed: int) -> _Model:
    with strategy.scope():
        tf_keras.utils.set_random_seed(seed)
        encoder = build_encoder(
            config.encoder, num_layers=depth, compute=config.compute, replayable=True
        )
        return _Model(encoder, build_mlm_head(config.encoder, encoder, compute=config.compute))


def _restore_origin(config: Config, run_dir: RunDir, strategy, init: Origin) -> _Model:
    model = _build(config, strategy, init.encoder.num_layers, seed=config.seed)
    with strategy.scope():
        fates = restore(init, model.encoder, model.head)
    if strategy.extended.should_checkpoint:
        write_report(fates, init, model.variables, run_dir)
    return model


def _run_stage(config, run_dir, strategy, tokenizer, model: _Model, stage: int, held_out) -> None:
    settings = config.pretrain
    steps = settings.stage_steps[stage]
    with strategy.scope():
        optimizer = build_optimizer(settings.optimizer, steps=steps)
        optimizer.build(model.variables)

    def batches(skip: int) -> tf.data.Dataset:
        return pretraining_batches(config, tokenizer, stage=stage, skip=skip)

    def make_trainer(steps_done: int) -> MlmTrainer:
        return MlmTrainer(
            encoder=model.encoder,
            head=model.head,
            sampled_softmax=settings.sampled_softmax,
            sources_of=lambda step: _sources(config, batches(step - 1)),
            strategy=strategy,
            optimizer=optimizer,
            clip_norm=settings.optimizer.clip_norm,
            lazy_embeddings=settings.optimizer.lazy_embeddings,
            dataset=distribute(strategy, lambda: batches(steps_done), settings.batch_size),
        )

    validation = None
    if held_out:
        evaluator = HeldOutEvaluator(
            strategy=strategy, encoder=model.encoder, head=model.head, examples=held_out
        )
        validation = Validation(evaluator, settings.held_out_interval)
    resumable.run(
        description=f"pretrain, stage {stage + 1} of {len(settings.stage_steps)}"
        f" ({len(model.encoder.transformer_layers)} layers)",
        strategy=strategy,
        make_trainer=make_trainer,
        optimizer=optimizer,
        checkpoint=tf.train.Checkpoint(encoder=model.encoder, head=model.head, optimizer=optimizer),
        checkpoint_dir=str(run_dir.checkpoints / f"stage_{stage + 1}"),
        run_dir=run_dir,
        steps=steps,
        loop=settings.loop,
        stage=stage,
        validation=validation,
    )


def _sources(config: Config, batches: tf.data.Dataset) -> list[str]:
    """Returns the files that the first batch came from."""
    paths = source_files(config)
    return [paths[number] for number in np.unique(next(iter(batches))["file"])]
