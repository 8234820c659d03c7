"""Python programs in processes of their own, forked where the heavy libraries are imported already.

To import TensorFlow, tf-models-official and Beam takes a process 8 seconds of CPU time, most of
what a test of a command would wait for. multiprocessing's fork server imports them once for all
tests of a pytest process. A program then runs in a fork of it: a process like any other, with its
own memory, exit status and signals. What a command imports, and how it starts, these cannot tell.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import resource
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from repository import ROOT

LABSE = ("-m", "labse_tf.cli.main")

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    ["tensorflow", "tf_keras", "tensorflow_text", "official.nlp.modeling", "orbit", "apache_beam"]
)


class Process:
    """`python ARGUMENTS`, where these are `-m MODULE ...` or `FILE ...`.

    `input` is what it reads from stdin, `stdout` a path that it writes to in place of what
    `communicate` returns, and `file_size` the most bytes that it can write to a file, as on a disk
    that is full. `returncode` is as that of subprocess.Popen.
    """

    def __init__(
        self,
        *arguments: str | Path,
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
        input: str = "",
        stdout: str | None = None,
        file_size: int | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="labse-forked-")
        stdin, kept, errors = (Path(self._folder.name, name) for name in ("in", "out", "err"))
        stdin.write_text(input, "utf-8")
        for path in (kept, errors):
            path.touch()
        self._outputs = (kept, errors)
        streams = (str(stdin), stdout or str(kept), str(errors))
        environment = dict(os.environ if env is None else env)
        self._process = _SERVER.Process(
            target=_run, args=(list(map(str, arguments)), str(cwd), environment, streams, file_size)
        )
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    poll = returncode.fget

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Returns its output and errors, once it has ended."""
        self._process.join(timeout)
        if self.returncode is None:
            self.kill()
            raise subprocess.TimeoutExpired("python", timeout)
        output, errors = (path.read_text("utf-8", "replace") for path in self._outputs)
        return output, errors


def run(*arguments: str | Path, timeout: float = 300, **options) -> subprocess.CompletedProcess:
    """Runs `python ARGUMENTS` to its end; options as those of Process."""
    process = Process(*arguments, **options)
    output, errors = process.communicate(timeout)
    return subprocess.CompletedProcess(list(arguments), process.returncode, output, errors)


def finish(processes: Sequence[Process], timeout: float = 600) -> None:
    """Waits until each has ended without an error; kills the others if one has not."""
    try:
        for process in processes:
            _, errors = process.communicate(timeout)
            assert process.returncode == 0, errors[-3000:]
    finally:
        for process in processes:
            process.kill()


def worker_environments(count: int) -> list[dict[str, str]]:
    """Returns the environment of each worker of a cluster on this machine, with TF_CONFIG."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in servers]
    for server in servers:
        server.close()
    tasks = [{"type": "worker", "index": index} for index in range(count)]
    return [
        {"TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": task})}
        for task in tasks
    ]


def _run(arguments, cwd, environment, streams, file_size) -> None:
    """Runs in the fork."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_WRONLY if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    # Python's own streams are the server's until now.
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)
        for number in range(3)
    )
    sys.stderr.reconfigure(line_buffering=True)
    # Beam's import logs, which gives the root a handler that no new process has.
    logging.root.handlers.clear()
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, cwd)
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).parent))
        runpy.run_path(arguments[0], run_name="__main__")
