"""Options for a Flink cluster, and a watch over its jobs, by the cluster's REST interface."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from apache_beam.options.pipeline_options import (
    DebugOptions,
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
)
from apache_beam.runners.portability.flink_runner import FlinkRunner
from apache_beam.runners.portability.job_server import JobServer

from beam_pipelines.runtime.errors import find_input_error, is_interruption
from labse_tf.errors import InputError

WORKER_COMMAND = "labse-beam-worker"
# The path of Beam's job server, if it is not given as an option.
JOB_SERVER_VARIABLE = "LABSE_FLINK_JOB_SERVER"
# The life of a worker process after the last step that used it. If it dies, Beam gives it to each
# attempt until the job has paused for longer than this. So it is less than the longest delay of
# Flink's restart strategy, 20 s in scripts/flink.sh.
_WORKER_LIFE_MS = 10_000
# An option of Beam's Java half alone. Flink's default, pipelined exchanges, can block where a step
# reads another one's output twice (FLINK-10672).
_BATCH_EXCHANGES = "--execution_mode_for_batch=BATCH_FORCED"
# Beam sends a worker up to 100 messages before it looks whether the worker keeps up. At its default
# of 1 MB each, that was more direct memory than a TaskManager has.
_MESSAGE_BYTES = "data_buffer_size_limit=100000"
_POLL_SECONDS = 2.0
# How long a job waits for the first TaskManager to come back.
_ALONE_SECONDS = 90.0
_LOCAL = ("[local]", "[auto]")


class ClusterRunner(FlinkRunner):
    """Starts Beam's job server, a JVM, once for all jobs of this process on a cluster."""

    _servers: ClassVar[dict[tuple[str, str | None], JobServer]] = {}

    def default_job_server(self, options: PipelineOptions) -> JobServer:
        server, flink = super().default_job_server(options), options.view_as(FlinkRunnerOptions)
        if flink.flink_submit_uber_jar:  # No process: it is for this job alone.
            return server
        return self._servers.setdefault((flink.flink_master, flink.flink_job_server_jar), server)


def is_cluster(options: PipelineOptions) -> bool:
    """Whether these options of the FlinkRunner name a cluster."""
    return options.view_as(FlinkRunnerOptions).flink_master not in _LOCAL


def complete_options(arguments: Sequence[str]) -> list[str]:
    """Returns Beam's options for a cluster with the defaults that suit our jobs, then the user's.

    Workers are processes that `labse-beam-worker` starts, found next to this Python, so it must be
    in the same place on all machines. The parallelism is the number of the cluster's slots.
    """
    options = PipelineOptions(list(arguments))
    flink, portable = options.view_as(FlinkRunnerOptions), options.view_as(PortableOptions)
    master = flink.flink_master
    version = ask(master, "/config")["flink-version"]
    added = [f"--flink_version={'.'.join(version.split('.')[:2])}", _BATCH_EXCHANGES]
    if not flink.flink_job_server_jar and os.environ.get(JOB_SERVER_VARIABLE):
        added.append(f"--flink_job_server_jar={os.environ[JOB_SERVER_VARIABLE]}")
    if portable.environment_type is None:
        command = json.dumps({"command": str(Path(sys.executable).with_name(WORKER_COMMAND))})
        added += ["--environment_type=PROCESS", f"--environment_config={command}"]
    if not portable.environment_cache_millis:
        added.append(f"--environment_cache_millis={_WORKER_LIFE_MS}")
    experiments = options.view_as(DebugOptions).experiments or []
    if not any(one.startswith(_MESSAGE_BYTES.partition("=")[0]) for one in experiments):
        added.append(f"--experiments={_MESSAGE_BYTES}")
    if flink.parallelism < 1:
        added.append(f"--parallelism={max(1, ask(master, '/overview')['slots-total'])}")
    if options.view_as(GoogleCloudOptions).job_name is None:
        added.append(f"--job_name=labse-{os.getpid()}-{os.urandom(4).hex()}")
    # If an option is given twice, the last one counts.
    return [*added, *arguments]


def ask(master: str, path: str, method: str = "GET") -> dict:
    """Returns the answer at `path` of a cluster's REST interface; raises InputError without one.

    `master` is HOST:PORT, or a URL.
    """
    url = (master if "://" in master else f"http://{master}").rstrip("/") + path
    try:
        request = urllib.request.Request(url, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except (OSError, ValueError) as error:
        problem = f"no Flink cluster answers at {master} ({error})"
        remedy = "give its REST address, such as --flink_master=HOST:8081"
        raise InputError(problem, remedy=remedy) from error


@contextlib.contextmanager
def watched(options: PipelineOptions) -> Iterator[None]:
    """Watches the job of these options while the block waits for it.

    Flink restarts a job whose worker failed; a worker that met bad input would fail each time, so
    its first InputError cancels the job, and is raised. Ctrl-C cancels it too: the job server could
    not, since a terminal's Ctrl-C ends it.
    """
    watch = _Watch(options)
    watch.start()
    try:
        yield
    except BaseException as error:
        if is_interruption(error):
            watch.cancel()
        if watch.input_error is None:
            raise
    finally:
        watch.stop()
    if watch.input_error is not None:
        raise watch.input_error


class _Watch(threading.Thread):
    def __init__(self, options: PipelineOptions) -> None:
        super().__init__(daemon=True)
        self._master = options.view_as(FlinkRunnerOptions).flink_master
        self._name = options.view_as(GoogleCloudOptions).job_name
        self._ended = threading.Event()
        self._job: str | None = None
        self.input_error: InputError | None = None

    def run(self) -> None:
        alone = 0.0
        while not self._ended.wait(_POLL_SECONDS):
            try:
                if self._find() is None:
                    continue
                failures = ask(self._master, f"/jobs/{self._job}/exceptions")
                self.input_error = find_input_error(json.dumps(failures))
                managers = ask(self._master, "/overview")["taskmanagers"]
                alone = 0.0 if managers else alone + _POLL_SECONDS
                if alone > _ALONE_SECONDS:
                    problem = f"the Flink cluster has had no TaskManager for {alone:.0f} s"
                    remedy = "look into their logs: they may need more memory, or smaller shards"
                    self.input_error = InputError(problem, remedy=remedy)
                if self.input_error is not None:
                    self.cancel()
                    return
            except InputError:
                continue  # The job's own messages say if the cluster is lost.

    def cancel(self) -> None:
        with contextlib.suppress(InputError):
            if self._find() is not None:
                ask(self._master, f"/jobs/{self._job}?mode=cancel", "PATCH")

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def _find(self) -> str | None:
        if self._job is None:
            jobs = ask(self._master, "/jobs/overview")["jobs"]
            self._job = next(
                (job["jid"] for job in jobs if job["name"].startswith(self._name)), None
            )
        return self._job
