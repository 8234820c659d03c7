"""Runs a pipeline on the engine that a user's Beam options name, the direct runner by default."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam
import grpc
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner, SwitchingDirectRunner
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    SubprocessSdkWorkerHandler,
    WorkerHandler,
)
from apache_beam.transforms.environments import SubprocessSDKEnvironment
from google.protobuf import json_format, text_format

from beam_pipelines.runtime import flink
from beam_pipelines.runtime.errors import find_cause, is_interruption
from beam_pipelines.runtime.storage import STORAGE, configure, scheme_of
from labse_tf.errors import InputError

# Types of `pipeline.runner`; Beam's DirectRunner is the switching one.
_DIRECT_RUNNERS = (FnApiRunner, SwitchingDirectRunner, BundleBasedDirectRunner)
# Names under which Beam knows runners of this machine, in lower case and without their modules.
_LOCAL_RUNNERS = ("direct", "directrunner", "prismrunner")
_LOCAL_RUNNERS += tuple(runner.__name__.lower() for runner in _DIRECT_RUNNERS)

# From this much input (bytes on disk) the direct runner uses one process per core. Starting these
# takes 5 s: 30 MB of short pairs take as long with two processes as with one.
MULTI_PROCESS_BYTES = 50_000_000
# Beam's message for a job that ended badly, before the engine's reason.
_FAILED = " failed in state FAILED"


class SharingOptions(PipelineOptions):
    @classmethod
    def _add_argparse_args(cls, parser):
        parser.add_argument(
            "--shared_filesystem",
            "--shared-filesystem",
            action="store_true",
            help="local paths are the same folders on all machines",
        )


class Engine:
    """The engine that a user's Beam options name.

    `arguments` are the options, with the defaults for the engine. If it `is_distributed`, workers
    may be on other machines; `is_flink_cluster` says that Flink runs them.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        """Raises InputError if the cluster that the options name does not answer."""
        configure(arguments)
        options = PipelineOptions(list(arguments))
        runner = options.view_as(StandardOptions).runner
        self._name = runner.rpartition(".")[2] if runner else "the direct runner"
        on_flink = self._name.lower() == "flinkrunner"
        self.is_distributed = not (
            runner is None
            or self._name.lower() in _LOCAL_RUNNERS
            or options.view_as(PortableOptions).environment_type == "LOOPBACK"
            # Beam starts a Flink of its own, and workers in this process.
            or (on_flink and not flink.is_cluster(options))
        )
        self.arguments = list(arguments)
        self._shares = options.view_as(SharingOptions).shared_filesystem
        self.is_flink_cluster = on_flink and self.is_distributed
        if self.is_flink_cluster:
            self.arguments = flink.complete_options(arguments)

    def check_paths(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        """Raises InputError for a path that workers on other machines cannot read."""
        for path in map(os.fspath, paths):
            if self.is_distributed and not self._shares and path and scheme_of(path) is None:
                problem = f"is a path on this machine: the workers of {self._name} cannot reach it"
                remedy = "use s3://, gs:// or hdfs://, or, if all machines have this folder, "
                remedy += "--shared-filesystem after `--`"
                raise InputError(problem, path=path, remedy=remedy)

    def shuffle_folder(self, folder: str) -> str | None:
        """Returns where `shuffle` puts its files; None if this engine carries the data itself."""
        return None if self.is_distributed else folder


class _Options(PipelineOptions):
    """Makes each view once: Beam asks for 500, and makes an argument parser for each (0.2 s)."""

    def view_as(self, cls):
        views = self.__dict__.setdefault("_views", {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]


def run_pipeline(job: beam.PTransform, paths: Sequence[str], engine: Engine) -> None:
    """Builds a pipeline of one transform, runs it and waits for its end.

    The size of the files at `paths`, which it reads, determines the default number of processes.
    Ctrl-C ends the job on a cluster too.

    Raises:
      InputError: as raised in a worker, if a worker dies, or if the job fails on a cluster.
    """
    options = _Options(engine.arguments)
    runner = None
    if options.view_as(StandardOptions).runner is None:
        runner = _direct_runner(options, paths)
    elif engine.is_flink_cluster:
        runner = flink.ClusterRunner()
    with _causes_raised(engine):
        pipeline = beam.Pipeline(runner=runner, options=options)
        _set_log_level(pipeline.runner)
        pipeline | type(job).__name__ >> job
        result = pipeline.run()
        watch = flink.watched(options) if engine.is_flink_cluster else contextlib.nullcontext()
        with watch:
            try:
                result.wait_until_finish()
            except KeyboardInterrupt:
                if not engine.is_flink_cluster:
                    result.cancel()
                raise


@contextlib.contextmanager
def _causes_raised(engine: Engine) -> Iterator[None]:
    """Raises the cause of a job's end in place of the errors that follow from it.

    It is Ctrl-C, an InputError of a worker, the death of a worker, or the engine's reason.
    """
    before, hook = len(_deaths), threading.excepthook
    # Beam's threads end so if a worker dies; each would show its traceback.
    threading.excepthook = lambda args: (
        None if _Worker.all and issubclass(args.exc_type, grpc.RpcError) else hook(args)
    )
    try:
        yield
    except Exception as error:
        if is_interruption(error):
            raise KeyboardInterrupt from error
        cause = find_cause(error)
        if cause is None and not isinstance(error, InputError):
            cause = next(iter(_deaths[before:]), None)
        if cause is None and engine.is_distributed and _FAILED in str(error):
            reason = str(error).partition(_FAILED)[2].partition("\n")[0]
            remedy = "look into the logs of its machines; see docs/cluster.md"
            cause = InputError(f"the job failed on the cluster{reason}", remedy=remedy)
        if cause is None:
            raise
        raise cause from error
    finally:
        threading.excepthook = hook


def has_worker_processes(beam_options: Sequence[str]) -> bool:
    """Whether these options ask for separate worker processes."""
    options = PipelineOptions(list(beam_options))
    mode = options.view_as(DirectOptions).direct_running_mode
    return options.view_as(StandardOptions).runner is not None or mode == "multi_processing"


def _set_log_level(runner: beam.runners.PipelineRunner) -> None:
    # Direct runners log a worker's exception with its traceback, then raise it: once is enough.
    is_direct = isinstance(runner, _DIRECT_RUNNERS)
    levels = {"apache_beam": logging.CRITICAL if is_direct else logging.INFO}
    # Beam warns of every type hint that is a string, as all are because of `annotations`, of every
    # option that only the Java half of an engine knows, and of starting Java.
    for name in ("typehints", "options.pipeline_options", "utils.subprocess_server"):
        levels[f"apache_beam.{name}"] = logging.CRITICAL if is_direct else logging.ERROR
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


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
    worker = f"{shlex.quote(sys.executable)} -m beam_pipelines.runtime.boot {os.getpid()}"
    return f"PYTHONPATH={shlex.quote(path)} exec {worker}"


# How workers of this machine died, in this process.
_deaths: list[InputError] = []


@WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)
class _Worker(SubprocessSdkWorkerHandler):
    """A worker process; if it ends before its time, so do the others of the job.

    Beam's own handler waits for ever for the answers of a dead worker.
    """

    all: list[_Worker] = []

    def start_worker(self) -> None:
        self._is_closing, self._is_closed = False, threading.Event()
        text = text_format.MessageToString
        environment = os.environ | {
            "CONTROL_API_SERVICE_DESCRIPTOR": text(self.control_api_service_descriptor()),
            "LOGGING_API_SERVICE_DESCRIPTOR": text(self.logging_api_service_descriptor()),
            "PIPELINE_OPTIONS": json_format.MessageToJson(
                self.provision_info.provision_info.pipeline_options
            ),
            "WORKER_ID": self.worker_id,
        }
        command = self._worker_command_line.decode("utf-8")
        self._process = subprocess.Popen(command, shell=True, env=environment)
        self.all.append(self)
        self.worker_thread = threading.Thread(target=self._watch, name="watch_worker")
        self.worker_thread.start()

    def close(self) -> None:
        self._is_closing = True
        try:
            super().close()
        finally:
            # Beam does not wait for a worker whose connections it cannot close.
            self.stop_worker()
            self._is_closed.set()
            self.all.remove(self)

    def _watch(self) -> None:
        status = self._process.wait()
        if status < 0 or not self._is_closing:
            _deaths.append(_death(status))
            threading.Thread(target=self._end_job, name="end_job", daemon=True).start()

    def _end_job(self) -> None:
        """Kills the other workers; answers what the runner asks this one, takes what it sends."""
        answer = beam_fn_api_pb2.InstructionResponse(error="a worker is dead")
        while True:
            for worker in list(self.all):
                if worker.control_handler is self.control_handler:
                    worker._process.kill()
            for future in list(self.control_conn._futures_by_id.values()):
                if not future.is_done():
                    future.set(answer)
            with contextlib.suppress(queue.Empty):
                while True:
                    self.data_conn._to_send.get_nowait()
            if self._is_closed.wait(0.1):
                return


def _death(status: int) -> InputError:
    how = f"was killed (signal {-status})" if status < 0 else f"ended with exit status {status}"
    why = ", probably because memory ran out" if status == -signal.SIGKILL else ""
    remedy = "use fewer workers (--direct_num_workers=N after `--`) or smaller shards"
    return InputError(f"a worker {how} before the job was done{why}", remedy=remedy)
