"""Ends a job of several processes on this machine if one of its workers dies.

Beam's own handler of worker processes waits for ever for what a dead worker should answer.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator

import grpc
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    SubprocessSdkWorkerHandler,
    WorkerHandler,
)
from google.protobuf import json_format, text_format

from labse_tf.errors import InputError

# How workers died, in this process.
_deaths: list[InputError] = []


@contextlib.contextmanager
def deaths_said() -> Iterator[None]:
    """Raises how a worker died in place of the errors that follow; around the run of a pipeline.

    Raises:
      InputError: how the first one died. An InputError of the block passes unchanged.
    """
    before, hook = len(_deaths), threading.excepthook
    # Beam's threads end so if a worker dies; each would show its traceback.
    threading.excepthook = lambda args: (
        None if _Worker.all and issubclass(args.exc_type, grpc.RpcError) else hook(args)
    )
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if len(_deaths) == before:
            raise
        raise _deaths[before] from error
    finally:
        threading.excepthook = hook


@WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)
class _Worker(SubprocessSdkWorkerHandler):
    """A worker process; if it ends before its time, so do the others of the job."""

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
    return InputError(
        f"a worker {how} before the job was done{why}",
        remedy="use fewer workers (--direct_num_workers=N after `--`), smaller shards, or a "
        "machine with more memory; or look for its message above",
    )
