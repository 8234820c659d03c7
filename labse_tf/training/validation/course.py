"""Validation while training: when it is due, which checkpoint is the best, when to stop."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import orbit
import tensorflow as tf

from labse_tf.errors import InputError
from labse_tf.training.distribution import from_first_replica
from labse_tf.training.runs.best import Best, read_best, save_best
from labse_tf.training.runs.checkpoints import find_damage

_log = logging.getLogger("labse")


@dataclasses.dataclass(frozen=True)
class Validation:
    """What a run is to measure beside its training.

    Attributes:
      evaluator: whose `evaluate` returns `{task: {metric: number, ...}}`.
      interval: steps between two measurements; there is one at the end, too.
      best: what is kept of the step with the best measure; None keeps nothing.
      measure: the task and the metric that this is.
      lower_is_better: whether the best is the lowest.
      patience: after so many measurements without a better one the run stops; 0 never stops.
    """

    evaluator: orbit.AbstractEvaluator
    interval: int
    best: tf.train.Checkpoint | None = None
    measure: tuple[str, str] = ("", "")
    lower_is_better: bool = False
    patience: int = 0


class Course:
    """What the measurements of a run say so far, those before it was stopped included.

    All workers hold the same one and decide alike: they compare what the first one measured.
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
        """Goes on from what was measured before.

        Args:
          validation: what is asked for.
          strategy: of the run.
          step: that the run is at.
          steps: the total.
          measured: the steps after which the run has measured already.
          checkpoints: the folder of the run's checkpoints, the best one among them.
          own_folder: where this worker is to save it: the same for the chief.
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
        """Whether patience is at an end."""
        return bool(self._validation.patience) and self.waited >= self._validation.patience

    @property
    def waited(self) -> int:
        """Measurements since the best one."""
        # The best may be of a step that the run, set back to its last checkpoint, will do again.
        return sum(self.best is not None and step > self.best.step for step in self._measured)

    def is_due(self, step: int) -> bool:
        """Whether to measure after `step`."""
        at_interval = step > 0 and step % self._validation.interval == 0
        return step not in self._measured and (at_interval or step == self._steps)

    def next_due(self, step: int) -> int:
        """Returns the next step after which to measure."""
        # Counted from 0 and not from `step`: a run that was stopped measures where others do.
        interval = self._validation.interval
        return min(self._steps, (step // interval + 1) * interval)

    def note(self, output: dict) -> None:
        """Takes in what the evaluator returned; keeps the checkpoint if it is the best."""
        step = int(self._step.numpy())
        self._measured.add(step)
        if self._validation.best is None:
            return
        task, metric = self._validation.measure
        accuracy = float(from_first_replica(self._strategy, output[task][metric]))
        if self.best is None or self._is_better(accuracy):
            facts = {"step": step, "accuracy": accuracy, "task": task}
            self.best = save_best(self._validation.best, self._own_folder, **facts)

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
        _log.warning("%s is damaged (%s): the next measurement is the best", best.path, damage)
        return None
    return best
