"""A worker process that dies ends the job, soon and with one line; workers end with the command."""

import os
import subprocess
import sys

import apache_beam as beam
import pytest

from beam_pipelines.runtime import engine as runners
from beam_pipelines.runtime.engine import Engine
from labse_tf.errors import InputError

TWO = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
# The other worker works meanwhile, as long as it lives.
WORK = "while kill -0 $PPID; do sleep 1; done 2> /dev/null"


class Shell(beam.PTransform):
    """Runs commands in the workers, whose processes are $PPID."""

    def __init__(self, *commands, stages=1):
        super().__init__()
        self.commands, self.stages = commands, stages

    def expand(self, begin):
        commands = begin | beam.Create(self.commands)
        for number in range(self.stages):
            commands |= f"shuffle {number}" >> beam.Reshuffle()
        return commands | beam.Map(os.system)


@pytest.mark.parametrize(
    ("commands", "stages", "said"),
    [
        (["kill -9 $PPID", WORK], 1, "signal 9"),
        (["kill -SEGV $PPID", "true"], 2, "signal 11"),
    ],
    ids=["beside one at work", "later"],
)
def test_a_worker_that_dies_ends_the_job(commands, stages, said, capfd):
    with pytest.raises(InputError, match=f"a worker was killed .{said}"):
        runners.run_pipeline(Shell(*commands, stages=stages), [], Engine(TWO))
    assert capfd.readouterr().err == ""


def test_workers_that_do_not_start(monkeypatch):
    monkeypatch.setattr(runners, "_worker_command", lambda: "exit 3")
    with pytest.raises(InputError, match="a worker ended with exit status 3"):
        runners.run_pipeline(Shell("true"), [], Engine(TWO))


def test_a_worker_ends_with_its_parent():
    waits = (
        "import sys; from beam_pipelines.runtime.boot import end_with; end_with(int(sys.argv[1]))"
    )
    leaves = (
        "import os, subprocess, sys; "
        f"subprocess.Popen([sys.executable, '-c', {waits!r}, str(os.getpid())])"
    )
    # It returns when nobody holds the pipes any more.
    subprocess.run([sys.executable, "-c", leaves], capture_output=True, check=True, timeout=100)
