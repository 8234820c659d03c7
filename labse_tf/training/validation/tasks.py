"""Runs the tasks of `labse eval` while the encoder is trained."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

import orbit
import tensorflow as tf

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.task import Task, find_task, primary_figure


class TaskEvaluator(orbit.AbstractEvaluator):
    """Measures the primary metric of each task, by label.

    Every worker measures all tasks, with the same result.
    """

    def __init__(self, tasks: Sequence[tuple[str, Task, str]], encoder: Encoder) -> None:
        """Prepares to measure.

        Args:
          tasks: from `label_tasks`.
          encoder: embeds with the network that is trained.
        """
        self._tasks = tasks
        self._encoder = encoder

    def evaluate(self, num_steps: tf.Tensor) -> dict[str, dict[str, float]]:
        """Returns `{label: {primary metric: value}}`; `num_steps` is ignored."""
        return {
            label: {task.PRIMARY_METRIC: primary_figure(task, task.evaluate(self._encoder, data))}
            for label, task, data in self._tasks
        }


def label_tasks(entries: Sequence[str], *, taken: Sequence[str]) -> list[tuple[str, Task, str]]:
    """Returns label, task and data of each `TASK=DIR`.

    The label is the task's name, followed by the folder's if the name is not unique:
    `retrieval:news`.

    Raises:
      InputError: if a task or folder does not exist, or two entries have the same label.
    """
    pairs = [entry.split("=", 1) for entry in entries]
    names = Counter([*taken, *(name for name, _ in pairs)])
    found = []
    for name, data in pairs:
        task = find_task(name)
        if not os.path.exists(data):
            raise InputError(
                "no such file or folder, named in 'train.evaluate'",
                path=data,
                remedy="check the path",
            )
        folder = os.path.basename(os.path.normpath(data))
        found.append((name if names[name] == 1 else f"{name}:{folder}", task, data))
    labels = Counter([*taken, *(label for label, _, _ in found)])
    if twice := [label for label, count in labels.items() if count > 1]:
        raise InputError(
            f"'train.evaluate' has {twice[0]} twice", remedy="give the folders different names"
        )
    return found


class Together(orbit.AbstractEvaluator):
    """Several evaluators as one, with their results merged."""

    def __init__(self, *evaluators: orbit.AbstractEvaluator) -> None:
        self._evaluators = evaluators

    def evaluate(self, num_steps: tf.Tensor) -> dict:
        """Returns the merged results, which have no key in common."""
        return {
            key: value
            for evaluator in self._evaluators
            for key, value in evaluator.evaluate(num_steps).items()
        }
