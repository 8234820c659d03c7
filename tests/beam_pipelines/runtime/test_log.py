"""Beam's log: silent on the direct runner, whose errors come back anyhow, told on any other."""

from __future__ import annotations

import pytest
from text_files import write_lines

# A job server inside the process and a worker that it sends work to: no direct runner.
PORTABLE = ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"]
PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
RUNNER = "--runner=DirectRunner"


@pytest.fixture
def broken(tmp_path):
    """A file of which a worker cannot decode the second line."""
    path = tmp_path / "de.txt"
    path.write_bytes("Guten Tag\nGröße\n".encode("latin-1"))
    return path


@pytest.mark.parametrize(
    "options",
    [[], *(pytest.param(one, marks=pytest.mark.slow) for one in (PROCESSES, [RUNNER]))],
)
def test_the_direct_runner_is_silent_whatever_it_is_called(labse, options, broken, tmp_path):
    result = labse("vocab", "build", broken, "--out", tmp_path / "vocab.txt", "--", *options)
    assert (result.returncode, result.stdout) == (2, "")
    first, second = result.stderr.splitlines()
    assert first == "counting words in 1 files"
    assert second.startswith(f"labse: error: {broken}:2: invalid UTF-8")


def test_another_runner_tells_of_its_job_and_what_went_wrong_in_a_worker(labse, broken, tmp_path):
    text = write_lines(tmp_path / "fr.txt", ["Bonjour", "Bonne nuit"])
    states = {}
    for path in (text, broken):
        out = tmp_path / f"{path.stem}.vocab"
        result = labse("vocab", "build", path, "--out", out, "--", *PORTABLE)
        lines = result.stderr.splitlines()
        start = "Job state changed to "
        states[path] = [line.split()[-1] for line in lines if line.startswith(start)]
        assert result.stdout == "" and result.returncode == (0 if path == text else 2)
        # Dozens of lines of how Beam reads our annotations would bury these.
        assert not [line for line in lines if "type hint" in line]
    assert states[text] == ["STOPPED", "STARTING", "RUNNING", "DONE"]
    assert states[broken][-1] == "FAILED"
    assert "Traceback (most recent call last):" in lines
    # And the last line is still for the user.
    assert lines[-1].startswith(f"labse: error: {broken}:2: invalid UTF-8")
