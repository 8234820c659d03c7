"""The output of a training loop: lines of metrics.jsonl, and the progress shown."""

from __future__ import annotations

import json
import logging

import tensorflow as tf

from labse_tf.progress import Progress
from labse_tf.training.runs.run_dir import RunDir

_log = logging.getLogger("labse")


class MetricsLog:
    """Writes a line to metrics.jsonl after each loop, and updates the progress shown."""

    def __init__(
        self, run_dir: RunDir, step: tf.Variable, progress: Progress, stage: int | None
    ) -> None:
        self._run_dir = run_dir
        self._step = step
        self._progress = progress
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
        shown = [f"{task} {_summary(values):.3f}" for task, values in output.items()]
        _log.info("step %d: accuracy on held-out text: %s", self._last, ", ".join(shown))

    def _write(self, values: dict) -> None:
        with open(self._run_dir.metrics_file, "a", encoding="utf-8") as file:
            line = {**self._position, "step": int(self._step.numpy()), **values}
            file.write(json.dumps(line) + "\n")


def _summary(values: dict) -> float:
    """Returns the accuracy, or else the only value: the primary metric of a task."""
    return values["accuracy"] if "accuracy" in values else next(iter(values.values()))
