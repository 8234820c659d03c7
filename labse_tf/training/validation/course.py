"""Validation during training: when it is due, which checkpoint is best, when to stop."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import orbit
import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.training.distribution import checkpoint_options, from_first_replica
from labse_tf.training.runs.best import Best, read_best, save_best
from labse_tf.training.runs.checkpoints import find_damage

_log = logging.getLogger("labse")


@dataclasses.dataclass(frozen=True)
class Validation:
    """What a run measures during training.

    Attributes:
      evaluator: its `evaluate` returns `{task: {metric: number, ...}}`.
      interval: steps between measurements; there is also one at the end.
      best: what to save at the step with the best measure; None saves nothing.
      measure: the task and metric that select the best step.
      lower_is_better: whether the lowest measure is the best.
      patience: the run stops after this many measurements without improvement; 0 never stops.
    """

    evaluator: orbit.AbstractEvaluator
    interval: int
    best: tf.train.Checkpoint | None = None
    measure: tuple[str, str] = ("", "")
    lower_is_better: bool = False
    patience: int = 0


class Course:
    """The state of a run's measurements so far, including those before a resume.

    It is the same on all workers, which decide alike: they compare the first worker's measurements.
    """

    def __init__(
        self,
        validation: Validation,
        *,
        strategy: tf.distribute.Strategy,
        step: tf.Variable,
        steps: int,
        measured: set[int],
        checkpoints: Path,
        own_folder: Path,
    ) -> None:
        """Continues from earlier measurements.

        Args:
          validation: what to measure.
          strategy: the run's strategy.
          step: the current step.
          steps: the total.
          measured: the steps after which the run has already measured.
          checkpoints: the folder of the run's checkpoints, including the best one.
          own_folder: the folder to which this worker saves it: `checkpoints` for the chief.
        """
        self._validation = validation
        self._strategy = strategy
        self._step = step
        self._steps = steps
        self._measured = set(measured)
        self._own_folder = own_folder
        self.best = None if validation.best is None else _find_best(checkpoints)

    @property
    def is_over(self) -> bool:
        """Whether patience is exhausted."""
        return bool(self._validation.patience) and self.waited >= self._validation.patience

    @property
    def waited(self) -> int:
        """Measurements since the best one."""
        # The best may be from a step that the run, resumed from an older checkpoint, will repeat.
        return sum(self.best is not None and step > self.best.step for step in self._measured)

    def is_due(self, step: int) -> bool:
        """Whether to measure after `step`."""
        at_interval = step > 0 and step % self._validation.interval == 0
        return step not in self._measured and (at_interval or step == self._steps)

    def next_due(self, step: int) -> int:
        """Returns the next step after which to measure."""
        # Counted from 0, not from `step`, so that a resumed run measures at the same steps.
        interval = self._validation.interval
        return min(self._steps, (step // interval + 1) * interval)

    def note(self, output: dict) -> None:
        """Records the evaluator's output; saves the checkpoint if it is the best."""
        step = int(self._step.numpy())
        self._measured.add(step)
        if self._validation.best is None:
            return
        task, metric = self._validation.measure
        accuracy = float(from_first_replica(self._strategy, output[task][metric]))
        if self.best is None or self._is_better(accuracy):
            self.best = save_best(
                self._validation.best,
                self._own_folder,
                step=step,
                accuracy=accuracy,
                task=task,
                options=checkpoint_options(self._strategy),
            )

    def _is_better(self, accuracy: float) -> bool:
        if self._validation.lower_is_better:
            return accuracy < self.best.accuracy
        return accuracy > self.best.accuracy


def _find_best(checkpoints: Path) -> Best | None:
    try:
        best = read_best(checkpoints)
    except InputError as error:
        _log.warning("%s", error)
        return None
    if best is not None and (damage := find_damage(best.path)):
        _log.warning("%s is damaged (%s): the next measurement counts as best", best.path, damage)
        return None
    return best
