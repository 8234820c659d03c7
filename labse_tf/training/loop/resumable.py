"""Runs a trainer to its end: resumes, saves, validates, and reports disk errors."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orbit
import tensorflow as tf
import tf_keras

from labse_tf.config import LoopConfig
from labse_tf.data import streams
from labse_tf.data.texts import input_errors
from labse_tf.files import staging
from labse_tf.progress import Progress
from labse_tf.training.distribution import checkpoint_options, worker_errors
from labse_tf.training.loop.metrics_log import MetricsLog
from labse_tf.training.loop.trainer import Trainer
from labse_tf.training.runs.best import DEV_PAIRS
from labse_tf.training.runs.checkpoints import make_newest, newest_whole, remove_unfinished
from labse_tf.training.runs.disk import disk_errors
from labse_tf.training.runs.run_dir import RunDir
from labse_tf.training.validation.course import Course, Validation

_log = logging.getLogger("labse")


def run(
    *,
    description: str,
    strategy: tf.distribute.Strategy,
    make_trainer: Callable[[int], Trainer],
    read_from: Callable[[int], Any],
    optimizer: tf_keras.optimizers.Optimizer,
    checkpoint: tf.train.Checkpoint,
    checkpoint_dir: str,
    run_dir: RunDir,
    steps: int,
    loop: LoopConfig,
    stage: int | None = None,
    validation: Validation | None = None,
) -> None:
    """Trains up to `steps`, from the newest whole checkpoint in `checkpoint_dir` if there is one.

    Args:
      description: shown with the progress.
      strategy: the strategy under which everything was created.
      make_trainer: called with the number of steps already done, after which its batches come.
      read_from: called with the number of steps done after each `SEGMENT`; returns the distributed
        dataset of the steps that follow.
      optimizer: its `iterations` count the steps.
      checkpoint: everything to be saved, including the optimizer.
      checkpoint_dir: a folder for this run's checkpoints only.
      run_dir: for metrics and TensorBoard.
      steps: the total.
      loop: intervals.
      stage: the stage of pre-training, for the metrics.
      validation: what to measure during training, if anything, and whether it can stop the run.

    Raises:
      InputError: if the input is invalid, all checkpoints are damaged, the disk is full, or
        another worker is gone.
    """
    is_chief = strategy.extended.should_checkpoint
    folder = Path(checkpoint_dir)
    with (
        input_errors(),
        worker_errors(strategy),
        _own_folder(is_chief, folder) as own,
        disk_errors(own),
    ):
        _restore(checkpoint, strategy, folder)
        done = int(optimizer.iterations.numpy())
        if is_chief:
            run_dir.forget_metrics_after(done, stage)
        if done:
            _log.info("%s: %d of %d steps already done", description, done, steps)
        course = None
        if validation is not None:
            measured = run_dir.measured_steps(done, stage)
            course = Course(
                validation,
                strategy=strategy,
                step=optimizer.iterations,
                steps=steps,
                measured=measured,
                checkpoints=folder,
                own_folder=own,
            )
        manager = _Manager(
            checkpoint,
            str(own),
            max_to_keep=loop.checkpoints_kept,
            step_counter=optimizer.iterations,
            checkpoint_interval=loop.checkpoint_interval,
            options=checkpoint_options(strategy),
            mirror=staging.mirror_of(run_dir.path) if is_chief else None,
        )
        if _is_finished(course, done, steps):
            if manager.latest_checkpoint is None:
                manager.save(checkpoint_number=done)
            _tell_end(description, course, done, steps)
            return
        with (
            Progress(description, total=steps, unit="step", initial=done) as progress,
            # Orbit prints every loop; we report progress and metrics ourselves.
            contextlib.redirect_stdout(io.StringIO()),
        ):
            summary_dir = run_dir.tensorboard / ("" if stage is None else f"stage_{stage + 1}")
            log = MetricsLog(run_dir, optimizer.iterations, progress, stage)
            trainer = make_trainer(done) if done < steps else None

            def read_on(_output) -> None:
                step = int(optimizer.iterations.numpy())
                if step % streams.SEGMENT == 0 and step < steps:
                    trainer.train_dataset = read_from(step)

            controller = orbit.Controller(
                trainer=trainer,
                global_step=optimizer.iterations,
                strategy=strategy,
                steps_per_loop=functools.partial(_loop_length, loop),
                checkpoint_manager=manager,
                summary_dir=str(summary_dir) if is_chief else None,
                eval_summary_dir=str(summary_dir / "held_out") if is_chief else None,
                train_actions=[read_on, *([log] if is_chief else [])],
                evaluator=None if validation is None else validation.evaluator,
                eval_actions=[log.held_out] if is_chief else [],
            )
            _train(controller, course, steps)
        _tell_end(description, course, int(optimizer.iterations.numpy()), steps)


class _Manager(tf.train.CheckpointManager):
    """Also sends what it saves, if the run dir is in a store."""

    def __init__(
        self,
        *args,
        options: tf.train.CheckpointOptions,
        mirror: staging.Mirror | None,
        **kwargs,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._save_options, self._mirror = options, mirror

    def save(self, *args, **kwargs) -> str | None:
        path = super().save(*args, **{**kwargs, "options": self._save_options})
        if path is not None and self._mirror is not None:
            self._mirror.push_soon()
        return path


def _loop_length(loop: LoopConfig, step: int) -> int:
    """Returns the steps of the next loop: checkpoints are saved only at the end of one."""
    return min(
        loop.log_interval, loop.checkpoint_interval, streams.SEGMENT - step % streams.SEGMENT
    )


def _train(controller: orbit.Controller, course: Course | None, steps: int) -> None:
    if course is None:
        controller.train(steps)
        return
    # Save the best checkpoint before the metrics line, so that the metrics never run ahead of it.
    controller.eval_actions = (course.note, *controller.eval_actions)
    while True:
        step = int(controller.global_step.numpy())
        if course.is_due(step):
            controller.evaluate(steps=1)
        if course.is_over or step >= steps:
            break
        controller.train(course.next_due(step), checkpoint_at_completion=False)
    controller.save_checkpoint()


@contextlib.contextmanager
def _own_folder(is_chief: bool, folder: Path) -> Iterator[Path]:
    """Yields the folder this worker saves to: all take part, but only the chief's files count."""
    if is_chief:
        yield folder
    else:
        with tempfile.TemporaryDirectory() as own:
            yield Path(own)


def _restore(checkpoint: tf.train.Checkpoint, strategy, folder: Path) -> None:
    newest = newest_whole(folder)
    if strategy.extended.should_checkpoint:
        remove_unfinished(folder)
        if newest is not None:
            make_newest(newest)
    with strategy.scope():
        checkpoint.restore(newest, checkpoint_options(strategy))


def _is_finished(course: Course | None, done: int, steps: int) -> bool:
    if course is None:
        return done >= steps
    return course.is_over or (done >= steps and not course.is_due(done))


def _tell_end(description: str, course: Course | None, step: int, steps: int) -> None:
    if course is None or course.best is None:
        return
    if course.is_over and step < steps:
        text = "%s: stopped at step %d of %d: %d measurements without improvement"
        _log.info(text, description, step, steps, course.waited)
    where = "accuracy %.3f on the dev pairs"
    if course.best.task != DEV_PAIRS:
        where = f"%.3f in the task {course.best.task}"
    text = f"%s: the best checkpoint is from step %d, {where}"
    _log.info(text, description, course.best.step, course.best.accuracy)
