"""Trains by `labse` for a given time: a trial of the first steps tells how many steps fit.

Also the cores that experiments share.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# The longer the run, the longer the trial: a shared machine is not equally fast all the time.
_TRIAL_STEPS, _TRIAL_STEPS_PER_MINUTE = 60, 5
# Configuration section of each command, and its key for the number of steps.
SECTION = {"train": "train", "pretrain": "pretrain", "train-nli": "nli", "train-laser": "laser"}
_LENGTH = {**dict.fromkeys(SECTION, "steps"), "pretrain": "stage_steps"}


class Cores:
    """Two cores of this machine, each for one run at a time."""

    def __init__(self) -> None:
        self._free: queue.Queue[int] = queue.Queue()
        for core in sorted(os.sched_getaffinity(0))[:2]:
            self._free.put(core)

    @contextlib.contextmanager
    def one(self) -> Iterator[int]:
        """Yields the number of a core, once one is free."""
        core = self._free.get()
        try:
            yield core
        finally:
            self._free.put(core)


class Timing(NamedTuple):
    """Duration of a run, process start included, and its speed in the second half."""

    steps: int
    seconds: float
    steps_per_second: float


class Stage(NamedTuple):
    """A command that trains, its configuration, settings, options, and seed.

    With a core, all its processes run on that one. With a log, their output is added to that file.
    """

    command: str
    config: str | Path
    settings: Mapping[str, Any]
    options: Sequence[object]
    seed: int
    core: int | None = None
    log: Path | None = None


class Speed(NamedTuple):
    """Seconds until a stage trains, and its steps per second."""

    start: float
    steps_per_second: float

    def steps_in(self, seconds: float) -> int:
        """Returns how many steps fit, the start included: an even number."""
        return max(2, 2 * round((seconds - self.start) * self.steps_per_second / 2))


def measure(stage: Stage, folder: Path, seconds: float) -> Speed:
    """Measures the speed of a stage that is to train for so many seconds; uses `folder`."""
    # Even: the last line of its metrics is about the second half.
    trial = 2 * (max(_TRIAL_STEPS, round(_TRIAL_STEPS_PER_MINUTE * seconds / 60)) // 2)
    took = train(stage, folder, trial)
    shutil.rmtree(folder)
    if not took.steps_per_second:
        raise SystemExit(f"{stage.command}: the trial of {trial} steps has logged no speed")
    return Speed(took.seconds - trial / took.steps_per_second, took.steps_per_second)


def train(stage: Stage, run_dir: Path, steps: int) -> Timing:
    """Trains a stage for an even number of steps."""
    command, section = stage.command, SECTION[stage.command]
    settings = {
        **stage.settings,
        f"{section}.{_LENGTH[command]}": f"[{steps}]" if command == "pretrain" else steps,
        f"{section}.loop.log_interval": max(1, steps // 2),
        f"{section}.loop.checkpoint_interval": max(1, steps),
        "seed": stage.seed,
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    start = time.perf_counter()
    options = (*stage.options, *words)
    labse(command, stage.config, "--run-dir", run_dir, *options, core=stage.core, log=stage.log)
    seconds = time.perf_counter() - start
    lines = (run_dir / "metrics.jsonl").read_text("utf-8").splitlines() if steps else []
    rates = [json.loads(line).get("steps_per_second") for line in lines]
    return Timing(steps, seconds, next((rate for rate in reversed(rates) if rate), 0.0))


def labse(*arguments: object, core: int | None = None, log: Path | None = None) -> None:
    run(sys.executable, "-m", "labse_tf.cli.main", *arguments, core=core, log=log)


def run(*command: object, core: int | None = None, log: Path | None = None) -> None:
    """Runs a command, on one core if it is given.

    Raises:
      SystemExit: if the command fails.
    """
    words = [str(word) for word in command]
    if core is not None:
        words = ["taskset", "-c", str(core), *words]
    if log is None:
        done = subprocess.run(words, check=False)
    else:
        with log.open("a", encoding="utf-8") as output:
            done = subprocess.run(words, stdout=output, stderr=output, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: failed{f', see {log}' if log else ''}")
