"""Chooses a Beam runner and runs a pipeline on it."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner, SwitchingDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from beam_pipelines.runtime.errors import input_errors_recovered

# Of `pipeline.runner`; Beam's DirectRunner is the switching one.
_DIRECT_RUNNERS = (FnApiRunner, SwitchingDirectRunner, BundleBasedDirectRunner)

# From this much input (bytes on disk) the direct runner takes a process for each core. These cost
# 5 s at start, mostly the import of Beam, against 0.3 s for working in this process, and data then
# travels between them. Measured on 2 cores, of which others used one or so, one process against
# two, in seconds:
#   10 MB (434,000 short pairs, 108 .gz files): filter 15.7 / 15.2, count words 8.2 / 8.4
#   30 MB (1.3 million):                        filter 35.7 / 34.9, count words 14.6 / 16.1
# So small inputs lose nothing by one process, and large ones gain as cores are free.
MULTI_PROCESS_BYTES = 50_000_000


class _Options(PipelineOptions):
    """Makes each view once.

    To build and start a pipeline, Beam asks for some 500 views, and makes an argument parser for
    each: 0.2 seconds. All views share their values, so it makes no difference which one it gets.
    """

    def view_as(self, cls):
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def run_pipeline(job: beam.PTransform, paths: Sequence[str], beam_options: Sequence[str]) -> None:
    """Builds and runs a pipeline of one transform, to its end.

    Args:
      job: takes the pipeline's start as its input.
      paths: the files that it reads; their size decides how many processes the default takes.
      beam_options: what the user gave Beam, as strings.

    Raises:
      InputError: as raised in a worker.
    """
    options = _Options(list(beam_options))
    runner = None
    if options.view_as(StandardOptions).runner is None:
        runner = _direct_runner(options, paths)
    with input_errors_recovered():
        pipeline = beam.Pipeline(runner=runner, options=options)
        _set_log_level(pipeline.runner)
        pipeline | type(job).__name__ >> job
        pipeline.run().wait_until_finish()


def has_worker_processes(beam_options: Sequence[str]) -> bool:
    """Whether these options ask for workers that are processes of their own."""
    options = PipelineOptions(list(beam_options))
    if options.view_as(StandardOptions).runner is not None:
        return True
    return options.view_as(DirectOptions).direct_running_mode == "multi_processing"


def _set_log_level(runner: beam.runners.PipelineRunner) -> None:
    if isinstance(runner, _DIRECT_RUNNERS):
        # It logs a worker's exception with its traceback, then raises it: once is enough.
        level = hints = logging.CRITICAL
    else:
        # Of a job on other machines the log is all that there is to see; a line for every type
        # hint that is a string, which `annotations` makes of all, would bury it.
        level, hints = logging.INFO, logging.WARNING
    logging.getLogger("apache_beam").setLevel(level)
    logging.getLogger("apache_beam.typehints").setLevel(hints)


def _direct_runner(options: PipelineOptions, paths: Sequence[str]) -> FnApiRunner:
    # Named itself: the runner that Beam calls DirectRunner first tries to download Prism.
    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode == "in_memory" and direct.direct_num_workers == 1:
        cores = len(os.sched_getaffinity(0))
        if cores > 1 and sum(map(os.path.getsize, paths)) >= MULTI_PROCESS_BYTES:
            direct.direct_num_workers = cores
            direct.direct_running_mode = "multi_processing"
    if direct.direct_running_mode != "multi_processing":
        return FnApiRunner()
    # Beam would start its own worker module; ours is quiet. `in_memory` merely says: not that one.
    direct.direct_running_mode = "in_memory"
    return FnApiRunner(
        default_environment=SubprocessSDKEnvironment.from_command_string(_worker_command())
    )


def _worker_command() -> str:
    # The path of this process, so that workers find our packages wherever they are started.
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    python = shlex.quote(sys.executable)
    return f"PYTHONPATH={shlex.quote(path)} exec {python} -m beam_pipelines.runtime.worker"
