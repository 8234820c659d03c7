"""Chooses a Beam runner and runs a pipeline on it."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import sys
from collections.abc import Iterator, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner, SwitchingDirectRunner
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from beam_pipelines.runtime import flink
from beam_pipelines.runtime.engine import Engine
from beam_pipelines.runtime.errors import input_errors_recovered
from beam_pipelines.runtime.processes import deaths_said
from beam_pipelines.runtime.storage import STORAGE
from labse_tf.errors import InputError

# Types of `pipeline.runner`; Beam's DirectRunner is the switching one.
_DIRECT_RUNNERS = (FnApiRunner, SwitchingDirectRunner, BundleBasedDirectRunner)

# From this much input (bytes on disk) the direct runner uses one process per core. Starting these
# takes 5 s, mostly for importing Beam, against 0.3 s for running in this process, and data is then
# sent between processes. Measured on 2 cores, about one of which was in use by others, one process
# against two, in seconds:
#   10 MB (434,000 short pairs, 108 .gz files): filter 15.7 / 15.2, count words 8.2 / 8.4
#   30 MB (1.3 million):                        filter 35.7 / 34.9, count words 14.6 / 16.1
# So small inputs lose nothing with one process, and large ones gain from more if cores are free.
MULTI_PROCESS_BYTES = 50_000_000
# What Beam says of a job that ended badly, before the engine's reason.
_FAILED = " failed in state FAILED"


class _Options(PipelineOptions):
    """Makes each view once: Beam asks for some 500, and makes an argument parser for each (0.2 s).

    All views share their values.
    """

    def view_as(self, cls):
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def run_pipeline(job: beam.PTransform, paths: Sequence[str], engine: Engine) -> None:
    """Builds a pipeline of one transform, runs it and waits for its end.

    Ctrl-C ends the job on a cluster too.

    Args:
      job: takes the pipeline's start as its input.
      paths: the files that it reads; their size determines the default number of processes.
      engine: where it runs.

    Raises:
      InputError: as raised in a worker, if a worker dies, or if the job fails on a cluster.
    """
    options = _Options(engine.arguments)
    runner = None
    if options.view_as(StandardOptions).runner is None:
        runner = _direct_runner(options, paths)
    with deaths_said(), input_errors_recovered(), _failures_said(engine):
        pipeline = beam.Pipeline(runner=runner, options=options)
        _set_log_level(pipeline.runner)
        pipeline | type(job).__name__ >> job
        result = pipeline.run()
        if isinstance(pipeline.runner, FlinkRunner) and engine.is_distributed:
            with flink.watched(options):
                result.wait_until_finish()
        else:
            try:
                result.wait_until_finish()
            except KeyboardInterrupt:
                result.cancel()
                raise


@contextlib.contextmanager
def _failures_said(engine: Engine) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if not engine.is_distributed or _FAILED not in str(error):
            raise
        reason = str(error).partition(_FAILED)[2].splitlines()[0]
        raise InputError(
            f"the job failed on the cluster{reason}",
            remedy="look into the logs of its machines, and compare its settings with "
            "docs/cluster.md",
        ) from error


def has_worker_processes(beam_options: Sequence[str]) -> bool:
    """Whether these options ask for separate worker processes."""
    options = PipelineOptions(list(beam_options))
    if options.view_as(StandardOptions).runner is not None:
        return True
    return options.view_as(DirectOptions).direct_running_mode == "multi_processing"


def _set_log_level(runner: beam.runners.PipelineRunner) -> None:
    if isinstance(runner, _DIRECT_RUNNERS):
        # These log a worker's exception with its traceback, then raise it: once is enough.
        level = hints = logging.CRITICAL
    else:
        # Of a job on other machines only the log is visible. A line for every type hint that is a
        # string, as all are because of `annotations`, would bury it.
        level, hints = logging.INFO, logging.WARNING
    logging.getLogger("apache_beam").setLevel(level)
    logging.getLogger("apache_beam.typehints").setLevel(hints)
    # It warns of every option that only the Java half of an engine knows, and of starting Java.
    for name in ("options.pipeline_options", "utils.subprocess_server"):
        logging.getLogger(f"apache_beam.{name}").setLevel(logging.ERROR)


def _direct_runner(options: PipelineOptions, paths: Sequence[str]) -> FnApiRunner:
    # Built explicitly: the runner that Beam calls DirectRunner first tries to download Prism.
    direct = options.view_as(DirectOptions)
    if direct.direct_running_mode == "in_memory" and direct.direct_num_workers == 1:
        cores = len(os.sched_getaffinity(0))
        if cores > 1 and sum(map(STORAGE.size, paths)) >= MULTI_PROCESS_BYTES:
            direct.direct_num_workers = cores
            direct.direct_running_mode = "multi_processing"
    if direct.direct_running_mode != "multi_processing":
        return FnApiRunner()
    # Beam would start its own worker module; ours is quiet. `in_memory` only disables Beam's own.
    direct.direct_running_mode = "in_memory"
    return FnApiRunner(
        default_environment=SubprocessSDKEnvironment.from_command_string(_worker_command())
    )


def _worker_command() -> str:
    # This process's `sys.path`, so that workers find our packages wherever they are started.
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    python = shlex.quote(sys.executable)
    worker = f"{python} -m beam_pipelines.runtime.worker {os.getpid()}"
    return f"PYTHONPATH={shlex.quote(path)} exec {worker}"
