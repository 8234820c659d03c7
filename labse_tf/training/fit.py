"""Training of any objective: its run dir and strategy, and the loop from the newest checkpoint."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orbit
import tensorflow as tf
import tf_keras

from labse_tf.config import Config, LoopConfig, OptimizerConfig
from labse_tf.data import record_counts, streams
from labse_tf.data.features import check_features
from labse_tf.data.texts import input_errors
from labse_tf.errors import InputError
from labse_tf.files import staging
from labse_tf.progress import Progress
from labse_tf.training.distribution import (
    checkpoint_options,
    create_strategy,
    distribute,
    is_chief,
    worker_errors,
)
from labse_tf.training.objectives import Objective, update
from labse_tf.training.optimizer import LazyAdamW, build_optimizer
from labse_tf.training.runs.checkpoints import (
    disk_errors,
    make_newest,
    newest_whole,
    remove_unfinished,
)
from labse_tf.training.runs.run_dir import RunDir, open_existing, open_or_create
from labse_tf.training.validation import Course, Validation

_log = logging.getLogger("labse")


@contextlib.contextmanager
def launch(
    path: str | os.PathLike[str],
    config: Config,
    *,
    strategy: str = "auto",
    tpu: str = "",
    logical_cpus: int = 0,
    overwrite: bool = False,
) -> Iterator[tuple[RunDir, tf.distribute.Strategy]]:
    """Yields the run dir of a resolved `config` and the strategy; `overwrite` starts the run over.

    Several workers share the run dir; only the chief creates it and holds its lock. A run dir in a
    store has a copy on this machine, which the chief sends there: at the start, with each
    checkpoint during training, and at the end. Other workers fetch it.

    Raises:
      InputError: as `open_or_create` and `create_strategy` raise.
    """
    settings = {"tpu": tpu, "logical_cpus": logical_cpus}
    path = staging.output_path(path, overwrite=overwrite)
    mirror = staging.mirror_of(Path(path))
    if is_chief(strategy):
        with (
            open_or_create(path, config, overwrite=overwrite) as run_dir,
            _mirrored(mirror, run_dir),
        ):
            made = create_strategy(strategy, **settings)
            with record_counts.kept_in(run_dir.counts_file, write=True):
                yield run_dir, made
    else:
        # Creating the strategy waits for the chief, which has created the run dir by then.
        made = create_strategy(strategy, **settings)
        if mirror is not None:
            mirror.sends = False
            mirror.pull()
        run_dir = open_existing(path)
        with record_counts.kept_in(run_dir.counts_file, write=False):
            yield run_dir, made


@contextlib.contextmanager
def _mirrored(mirror: staging.Mirror | None, run_dir: RunDir) -> Iterator[None]:
    if mirror is None:
        yield
        return
    mirror.claim()
    mirror.push()
    try:
        yield
    except BaseException as error:
        if isinstance(error, InputError) and not run_dir.checkpoints.exists():
            mirror.withdraw()  # A run that could not start must not be in the way.
        else:
            with contextlib.suppress(InputError):
                mirror.push()
        raise
    mirror.push()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """A part of training with its own optimiser and checkpoints.

    Attributes:
      description: shown with the progress.
      batch_size: rows of the global batch; 0 if their number varies.
      input_parts: number of parts of which a batch is made, each from a part of the corpora.
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
    objective: Objective,
    batches: Callable[..., tf.data.Dataset],
    stage: Stage,
    run_dir: RunDir,
    strategy: tf.distribute.Strategy,
    validation: Validation | None = None,
) -> None:
    """Trains for a stage, from its newest whole checkpoint if there is one.

    Args:
      objective: the loss and what it trains, created under the strategy.
      batches: called with the number of steps done, at the start and after each `SEGMENT` of
        steps; returns endless global batches for the steps that follow. With several
        `stage.input_parts`, called with a `Part` too: parts of batches.
      stage: its length and settings.
      run_dir: for metrics and TensorBoard.
      strategy: the run's strategy.
      validation: the measurements during training, if any, which can stop the run.

    Raises:
      InputError: if the input is invalid, the replicas cannot share a batch evenly, all checkpoints
        are damaged, the disk is full, or another worker is gone.
      TypeError: if the batches lack a feature that the objective reads.
    """
    saves, steps = strategy.extended.should_checkpoint, stage.steps
    with strategy.scope():
        optimizer = build_optimizer(stage.optimizer, steps=steps)
        optimizer.build(objective.variables)
    checkpoint = tf.train.Checkpoint(**objective.parts, optimizer=optimizer)

    def read_from(step: int):
        """Returns the distributed batches of the steps after `step`."""
        return distribute(
            strategy,
            lambda *part: check_features(batches(step, *part), objective.features),
            stage.batch_size,
            parts=stage.input_parts,
        )

    with (
        input_errors(),
        worker_errors(strategy),
        _own_folder(saves, stage.checkpoints) as own,
        disk_errors(own),
    ):
        _restore(checkpoint, strategy, stage.checkpoints)
        done = int(optimizer.iterations.numpy())
        if saves:
            run_dir.forget_metrics_after(done, stage.number)
        if done:
            _log.info("%s: %d of %d steps already done", stage.description, done, steps)
        course = Course(
            validation or Validation(),
            strategy=strategy,
            step=optimizer.iterations,
            steps=steps,
            measured=run_dir.measured_steps(done, stage.number),
            checkpoints=stage.checkpoints,
            own_folder=own,
        )
        manager = _Manager(
            checkpoint,
            str(own),
            max_to_keep=stage.loop.checkpoints_kept,
            step_counter=optimizer.iterations,
            checkpoint_interval=stage.loop.checkpoint_interval,
            options=checkpoint_options(strategy),
            mirror=staging.mirror_of(run_dir.path) if saves else None,
        )
        if course.is_finished(done):
            if manager.latest_checkpoint is None:
                manager.save(checkpoint_number=done)
            course.tell_end(stage.description)
            return
        with (
            Progress(stage.description, total=steps, unit="step", initial=done) as progress,
            # Orbit prints every loop; we report progress and metrics ourselves.
            contextlib.redirect_stdout(io.StringIO()),
        ):
            trainer = None
            if done < steps:
                trainer = Trainer(
                    objective,
                    strategy=strategy,
                    optimizer=optimizer,
                    clip_norm=stage.optimizer.clip_norm,
                    lazy_embeddings=stage.optimizer.lazy_embeddings,
                    dataset=read_from(done),
                )

            def read_on(_output) -> None:
                step = int(optimizer.iterations.numpy())
                if step % streams.SEGMENT == 0 and step < steps:
                    trainer.train_dataset = read_from(step)

            def loop_length(step: int) -> int:
                # Checkpoints are saved only at the end of a loop.
                rest = streams.SEGMENT - step % streams.SEGMENT
                return min(stage.loop.log_interval, stage.loop.checkpoint_interval, rest)

            log = MetricsLog(run_dir, optimizer.iterations, progress, stage.number)
            folder = "" if stage.number is None else f"stage_{stage.number + 1}"
            summaries = run_dir.tensorboard / folder
            controller = orbit.Controller(
                trainer=trainer,
                global_step=optimizer.iterations,
                strategy=strategy,
                steps_per_loop=loop_length,
                checkpoint_manager=manager,
                summary_dir=str(summaries) if saves else None,
                eval_summary_dir=str(summaries / "held_out") if saves else None,
                train_actions=[read_on, *([log] if saves else [])],
                evaluator=validation and validation.evaluator,
                # The best checkpoint is saved first, so that the metrics never run ahead of it.
                eval_actions=[course.note, *([log.held_out] if saves else [])],
            )
            train_and_measure(controller, course)
        course.tell_end(stage.description)


def train_and_measure(controller: orbit.Controller, course: Course) -> None:
    """Trains to the end of a course, with measurements when they are due."""
    while True:
        step = int(controller.global_step.numpy())
        if course.is_due(step):
            controller.evaluate(steps=1)
        if course.is_over or step >= course.steps:
            break
        controller.train(course.next_due(step), checkpoint_at_completion=False)
    controller.save_checkpoint()


class Trainer(orbit.StandardTrainer):
    """Orbit's loop over the steps of an objective, with its metrics."""

    def __init__(
        self,
        objective: Objective,
        *,
        strategy: tf.distribute.Strategy,
        optimizer: tf_keras.optimizers.Optimizer,
        clip_norm: float,
        dataset,
        lazy_embeddings: bool = True,
    ) -> None:
        """Prepares to train on a `dataset` of distributed global batches.

        The other arguments are as for `update`. `lazy_embeddings` is its `lazy`, but on TPUs the
        update is dense, as XLA needs static shapes.
        """
        if not objective.variables:
            raise ValueError("there are no variables to train: call the model once first")
        on_tpu = isinstance(strategy, tf.distribute.TPUStrategy)
        # In a TensorFlow loop a gather must have the same shape in all steps, but batches have
        # different lengths, and sparse gradients have as many rows as the batch has tokens.
        in_graph = on_tpu or strategy.num_replicas_in_sync == 1
        super().__init__(dataset, orbit.StandardTrainerOptions(use_tf_while_loop=in_graph))
        self.objective, self._strategy, self._optimizer = objective, strategy, optimizer
        lazy = lazy_embeddings and not on_tpu
        self._options = {"clip_norm": clip_norm, "lazy": lazy}
        self._catches_up = lazy and isinstance(optimizer, LazyAdamW)
        with strategy.scope():
            optimizer.build(objective.variables)
            self._metrics, objective.metrics = (
                {name: tf_keras.metrics.Mean(name) for name in names}
                for names in (("loss", "accuracy", "gradient_norm"), objective.METRICS)
            )
            first = tf.VariableAggregation.ONLY_FIRST_REPLICA
            self._broken_step = tf.Variable(-1, False, dtype=tf.int64, aggregation=first)

    # No code of a step branches on a tensor, and AutoGraph's search takes longer than tracing.
    @tf.autograph.experimental.do_not_convert
    def train_step(self, iterator) -> None:
        self._strategy.run(self._replica_step, args=(next(iterator),))

    def _replica_step(self, batch) -> None:
        loss, accuracy, norm = update(self.objective, batch, self._optimizer, **self._options)
        for metric, value in zip(self._metrics.values(), (loss, accuracy, norm), strict=True):
            metric.update_state(value)
        # No `if`: a variable shared by replicas must not be assigned inside a branch.
        is_broken = ~(tf.math.is_finite(loss) & tf.math.is_finite(norm))
        first_broken = (self._broken_step < 0) & is_broken
        self._broken_step.assign(
            tf.where(first_broken, self._optimizer.iterations, self._broken_step)
        )
        self.objective.observe(batch, loss, accuracy)

    def train_loop_begin(self) -> None:
        """Starts the clock; saving and measuring between loops do not count as training time."""
        self._start = (int(self._optimizer.iterations.numpy()), time.perf_counter())

    def train_loop_end(self) -> dict[str, tf.Tensor | float]:
        """Returns the loop's means, steps per second, and the learning rate.

        Raises InputError if the loss or gradient was not finite, which is never saved as a
        checkpoint, or is 0.
        """
        if self._broken_step >= 0:
            step = int(self._broken_step)
            remedy = "start a run with a lower optimizer.learning_rate or optimizer.clip_norm"
            problem = f"the loss or the gradient of step {step} is not finite"
            raise InputError(problem, remedy=remedy)
        if self._catches_up:
            # Checkpoints and measurements see the weights that AdamW would have.
            with self._strategy.scope():
                self._optimizer.catch_up_all(self.objective.variables)
        first, start = self._start
        speed = (int(self._optimizer.iterations.numpy()) - first) / (time.perf_counter() - start)
        means = {name: metric.result() for name, metric in self._metrics.items()}
        if means["gradient_norm"] == 0.0:
            problem = "the gradient is 0: nothing is left to learn, as from copies of one pair"
            raise InputError(problem, remedy="give several different texts")
        # A metric that no step of the loop updated has no mean.
        more = self.objective.metrics
        means |= {name: metric.result() for name, metric in more.items() if metric.count > 0}
        for metric in (*self._metrics.values(), *more.values()):
            metric.reset_state()
        learning_rate = self._optimizer.learning_rate.numpy()
        return {**means, "learning_rate": learning_rate, "steps_per_second": speed}


class MetricsLog:
    """Writes a line to metrics.jsonl after each loop, and updates the progress shown."""

    def __init__(
        self, run_dir: RunDir, step: tf.Variable, progress: Progress, stage: int | None
    ) -> None:
        self._file, self._step, self._progress = run_dir.metrics_file, step, progress
        self._position = {} if stage is None else {"stage": stage}
        self._last = int(step.numpy())

    def __call__(self, output: dict[str, tf.Tensor]) -> None:
        step = int(self._step.numpy())
        values = {name: float(f"{float(value):.6g}") for name, value in output.items()}
        if "tokens" in values:
            values["tokens_per_second"] = round(values["tokens"] * values["steps_per_second"], 1)
        self._write(values)
        shown = {name: f"{values[name]:.3f}" for name in ("loss", "accuracy")}
        self._progress.update(step - self._last, **shown)
        self._last = step

    def held_out(self, output: dict) -> None:
        """Writes the result of an evaluator."""
        self._write({"held_out": output})
        # A task of `labse eval` has one value, its primary metric.
        shown = [
            f"{task} {values.get('accuracy', next(iter(values.values()))):.3f}"
            for task, values in output.items()
        ]
        _log.info("step %d: accuracy on held-out text: %s", self._last, ", ".join(shown))

    def _write(self, values: dict) -> None:
        with open(self._file, "a", encoding="utf-8") as file:
            line = {**self._position, "step": int(self._step.numpy()), **values}
            file.write(json.dumps(line) + "\n")


class _Manager(tf.train.CheckpointManager):
    """Also sends what it saves, if the run dir is in a store."""

    def __init__(
        self, *args, options: tf.train.CheckpointOptions, mirror: staging.Mirror | None, **kwargs
    ) -> None:
        super().__init__(*args, **kwargs)
        self._save_options, self._mirror = options, mirror

    def save(self, *args, **kwargs) -> str | None:
        path = super().save(*args, **{**kwargs, "options": self._save_options})
        if path is not None and self._mirror is not None:
            self._mirror.push_soon()
        return path


@contextlib.contextmanager
def _own_folder(saves: bool, folder: Path) -> Iterator[Path]:
    """Yields the folder this worker saves to: all take part, but only the chief's files count."""
    if saves:
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
