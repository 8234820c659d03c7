"""Trains any model: combines optimiser, batches, trainer and checkpoints."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tensorflow as tf

from labse_tf.config import LoopConfig, OptimizerConfig
from labse_tf.data.features import check_features
from labse_tf.data.streams import WHOLE, Part
from labse_tf.training.loop import resumable
from labse_tf.training.loop.trainer import Trainer, distribute
from labse_tf.training.optimizer.adamw import build_optimizer, count_layers
from labse_tf.training.runs.run_dir import RunDir
from labse_tf.training.validation.course import Validation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of training with its own optimiser and checkpoints.

    Attributes:
      description: shown with the progress.
      steps: number of steps to train.
      batch_size: rows of the global batch; 0 if their number varies.
      input_parts: number of parts of which a batch is made, each from a part of the corpora.
      optimizer: its settings.
      loop: intervals of log lines and checkpoints.
      checkpoints: a folder for this stage's checkpoints only.
      number: counted from 0 in a run with several stages; None if it has one.
    """

    description: str
    steps: int
    batch_size: int
    optimizer: OptimizerConfig
    loop: LoopConfig
    checkpoints: Path
    number: int | None = None
    input_parts: int = 1


def fit(
    stage: Stage,
    *,
    trainer: Callable[..., Trainer],
    batches: Callable[[int], tf.data.Dataset],
    model: Mapping[str, tf.Module],
    variables: Sequence[tf.Variable],
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    validation: Validation | None = None,
) -> None:
    """Trains `variables` for a stage, or resumes where it was stopped.

    Args:
      stage: its length and settings.
      trainer: the objective: called with the arguments of `Trainer`, except `variables` and
        `generators`.
      batches: called with the number of steps done, at the start and after each `SEGMENT` of
        steps; returns endless global batches for the steps that follow. With several
        `stage.input_parts`, called with a `Part` too: parts of batches.
      model: what checkpoints contain besides the optimiser, by name; created under the strategy.
      variables: the model's variables to train.
      run_dir: for metrics and TensorBoard.
      strategy: the run's strategy.
      validation: what to measure during training, if anything.

    Raises:
      InputError: if the replicas cannot share a batch evenly, or as `resumable.run` raises.
      TypeError: if the batches lack a feature that the trainer reads.
    """
    with strategy.scope():
        optimizer = build_optimizer(
            stage.optimizer, steps=stage.steps, layers=count_layers(variables)
        )
        optimizer.build(variables)

    built = []

    def read_from(steps_done: int):
        def build(part: Part) -> tf.data.Dataset:
            # Called by `distribute`, once per input pipeline and part.
            built[:] = [batches(steps_done) if part == WHOLE else batches(steps_done, part)]
            return built[0]

        return distribute(strategy, build, stage.batch_size, parts=stage.input_parts)

    def make_trainer(steps_done: int) -> Trainer:
        made = trainer(
            strategy=strategy,
            optimizer=optimizer,
            clip_norm=stage.optimizer.clip_norm,
            lazy_embeddings=stage.optimizer.lazy_embeddings,
            dataset=read_from(steps_done),
        )
        check_features(built[0], made.features)
        return made

    resumable.run(
        description=stage.description,
        strategy=strategy,
        make_trainer=make_trainer,
        read_from=read_from,
        optimizer=optimizer,
        checkpoint=tf.train.Checkpoint(**model, optimizer=optimizer),
        checkpoint_dir=stage.checkpoints,
        run_dir=run_dir,
        steps=stage.steps,
        loop=stage.loop,
        stage=stage.number,
        validation=validation,
    )
