"""Chooses a Beam runner and runs a pipeline on it."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from beam_pipelines.errors import input_errors_recovered

MULTI_PROCESS_BYTES = 1 << 62


def run_pipeline(
    job: beam.PTransform, paths: Sequence[str], beam_options: Sequence[str]
) -> None:
    """Builds and runs a pipeline of one transform, to its end.

    Args:
      job: takes the pipeline's start as its input.
      paths: the files that it reads; their size decides how many processes the default takes.
      beam_options: what the user gave Beam, as strings.

    Raises:
      InputError: as raised in a worker.
    """
    # Beam logs a worker's exception with its traceback, then raises it: once is enough.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    options = PipelineOptions(list(beam_options))
    runner = None
    if options.view_as(StandardOptions).runner is None:
        runner = _direct_runner(options, paths)
    with input_errors_recovered():
        pipeline = beam.Pipeline(runner=runner, options=options)
        pipeline | type(job).__name__ >> job
        pipeline.run().wait_until_finish()


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
    return f"PYTHONPATH={shlex.quote(path)} exec {shlex.quote(sys.executable)} -m beam_pipelines.worker"
