"""Beam's log: silent on the direct runner, whose errors come back anyhow, told on any other."""

from __future__ import annotations

import subprocess
import sys

import pytest
from text_files import write_lines

# A job server inside the process and a worker that it sends work to: no direct runner.
PORTABLE = ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"]
PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
BY_WHOLE_NAME = "--runner=apache_beam.runners.direct.direct_runner.BundleBasedDirectRunner"
HINTS = "type hint"


@pytest.fixture
def broken(tmp_path):
    """A file of which a worker cannot decode the second line."""
    path = tmp_path / "de.txt"
    path.write_bytes("Guten Tag\nGröße\n".encode("latin-1"))
    return path


@pytest.mark.parametrize(
    "options",
    [
        [],
        pytest.param(PROCESSES, marks=pytest.mark.slow),
        *(
            pytest.param([runner], marks=pytest.mark.slow)
            for runner in ("--runner=DirectRunner", "--runner=FnApiRunner", BY_WHOLE_NAME)
        ),
    ],
)
def test_the_direct_runner_is_silent_whatever_it_is_called(labse, options, broken, tmp_path):
    result = labse("vocab", "build", broken, "--out", tmp_path / "vocab.txt", "--", *options)
    assert (result.returncode, result.stdout) == (2, "")
    first, second = result.stderr.splitlines()
    assert first == "counting words in 1 files"
    assert second.startswith(f"labse: error: {broken}:2: invalid UTF-8")


def test_another_runner_tells_of_its_job(labse, tmp_path):
    text = tmp_path / "de.txt"
    write_lines(text, ["Guten Tag", "Gute Nacht"])
    result = labse("vocab", "build", text, "--out", tmp_path / "vocab.txt", "--", *PORTABLE)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    lines = result.stderr.splitlines()
    states = [line.split()[-1] for line in lines if line.startswith("Job state changed to ")]
    assert states == ["STOPPED", "STARTING", "RUNNING", "DONE"]
    # Dozens of lines of how Beam reads our annotations would bury these.
    assert not [line for line in lines if HINTS in line]


def test_another_runner_tells_what_went_wrong_in_a_worker(labse, broken, tmp_path):
    result = labse("vocab", "build", broken, "--out", tmp_path / "vocab.txt", "--", *PORTABLE)
    assert (result.returncode, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert "Traceback (most recent call last):" in lines
    assert "Job state changed to FAILED" in lines
    # And the last line is still for the user.
    assert lines[-1].startswith(f"labse: error: {broken}:2: invalid UTF-8")


@pytest.mark.slow
def test_the_level_is_that_of_the_job_and_not_of_the_one_before(broken, tmp_path):
    program = f"""
import sys
from labse_tf.cli.main import main
for options in {[[], PORTABLE, []]!r}:
    print("JOB", file=sys.stderr)
    main(["vocab", "build", {str(broken)!r}, "--out", {str(tmp_path / "v")!r}, "--", *options])
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    nothing, direct, portable, direct_again = result.stderr.split("JOB\n")
    assert nothing == "" and direct == direct_again and direct.count("\n") == 2
    assert "Job state changed to FAILED" in portable
