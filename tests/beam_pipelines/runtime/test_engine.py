"""Jobs on the engine that a user's Beam options name; workers that die, and Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from text_files import content_of, write_lines

from beam_pipelines import filter_bitext, quality_model
from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.apply_filters import JobOptions
from beam_pipelines.filters.low_quality import LowQuality
from beam_pipelines.quality_model import BITS, QualityModel
from beam_pipelines.runtime import engine as engines
from beam_pipelines.runtime.engine import Engine, run_pipeline
from beam_pipelines.runtime.errors import is_interruption
from beam_pipelines.runtime.flink import ask
from beam_pipelines.runtime.storage import absolute, parts_folder, write_file
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import MONOLINGUAL

# Nobody listens on the discard port.
NOBODY = "127.0.0.1:9"
PORTABLE = ["--runner=PortableRunner", f"--job_endpoint={NOBODY}"]
# The last are workers in this process, and a Flink that Beam starts.
HERE = (
    *([], ["--runner=direct"]),
    ["--runner=apache_beam.runners.direct.direct_runner.DirectRunner"],
    *([*PORTABLE, "--environment_type=LOOPBACK"], ["--runner=FlinkRunner"]),
)
TWO = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
# The other worker works meanwhile, as long as it lives.
WORK = "while kill -0 $PPID; do sleep 1; done 2> /dev/null"


def test_engines_of_this_machine():
    for options in HERE:
        engine = Engine(options)
        assert not engine.is_distributed and engine.arguments == options
        assert engine.shuffle_folder("folder") == "folder"
        engine.check_paths(["de.tsv", "s3://bucket/de.tsv"])


def test_on_a_cluster_the_engine_carries_data_and_needs_paths_that_workers_reach(tmp_path):
    engine = Engine(PORTABLE)
    assert engine.is_distributed and engine.shuffle_folder("folder") is None
    engine.check_paths(["s3://bucket/de.tsv", "gs://bucket/out", "HDFS://folder"])
    for path in ("de.tsv", "/data/de.tsv", "file:///data/de.tsv"):
        with pytest.raises(InputError, match="workers of PortableRunner") as caught:
            engine.check_paths(["s3://bucket/de.tsv", path])
        assert caught.value.path == path and "--shared-filesystem" in caught.value.remedy
    Engine([*PORTABLE, "--shared-filesystem"]).check_paths(["de.tsv"])
    # Models are among the paths.
    quality_model.save(QualityModel(np.zeros(1 << BITS, np.float32), 0.0), tmp_path, {})
    options = {"filters": [LowQuality(tmp_path)], "options": JobOptions(beam_options=PORTABLE)}
    with pytest.raises(InputError, match="cannot reach") as caught:
        filter_job.run(["s3://bucket/de.txt"], "s3://bucket/out", kind=MONOLINGUAL, **options)
    assert caught.value.path == str(tmp_path)


def test_what_cannot_be_reached(tmp_path):
    options = ["--runner=FlinkRunner", f"--flink_master={NOBODY}", "--shared-filesystem"]
    with pytest.raises(InputError, match="no Flink cluster answers at 127.0.0.1:9"):
        filter_bitext.run(["de.tsv"], str(tmp_path / "out"), beam_options=options)
    with pytest.raises(InputError, match="no Flink cluster"):
        ask(f"http://{NOBODY}/", "/overview")
    for url, remedy in (("hdfs://folder", "--hdfs_host"), ("ftp://h/x", "s3://")):
        with pytest.raises(InputError, match=f"cannot read {url[:3]}") as caught:
            filter_bitext.run([url], "out")
        assert remedy in caught.value.remedy


def test_paths_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("de.tsv") == os.path.join(tmp_path, "de.tsv")
    assert absolute("s3://bucket/de.tsv") == "s3://bucket/de.tsv"
    write_file("scores.tsv", b"content")
    write_file("new/scores.tsv", b"more")
    assert content_of(tmp_path) == {"scores.tsv": b"content", "new/scores.tsv": b"more"}


def test_the_folder_of_parts_is_of_one_job_and_removed_with_it(tmp_path):
    path = tmp_path / "оценки [v2]*.tsv"
    write_lines(tmp_path / f"{path.name}.parts" / "of a killed job.tsv", [])
    with parts_folder(str(path)) as folder:
        assert list(Path(folder).iterdir()) == []
        Path(folder, "de.tsv").touch()
        with pytest.raises(InputError, match="another process"), parts_folder(str(path)):
            pytest.fail("the block ran")
        assert [one.name for one in Path(folder).iterdir()] == ["de.tsv"]
    assert list(tmp_path.iterdir()) == []


def _press_ctrl_c(_):
    raise KeyboardInterrupt


@beam.ptransform_fn
def Interrupted(begin):
    return begin | beam.Create([1]) | beam.Map(_press_ctrl_c)


def test_ctrl_c_inside_a_dofn_is_a_keyboard_interrupt():
    with pytest.raises(KeyboardInterrupt):
        run_pipeline(Interrupted(), [], Engine([]))
    # It is found behind the errors that it causes.
    error = ValueError("Cannot invoke RPC on closed channel!")
    assert not is_interruption(error)
    error.__context__ = KeyboardInterrupt()
    assert is_interruption(error)


@beam.ptransform_fn
def Shell(begin, *commands, stages=1):
    """Runs commands in the workers, whose processes are $PPID."""
    steps = begin | beam.Create(commands)
    for number in range(stages):
        steps |= f"shuffle {number}" >> beam.Reshuffle()
    return steps | beam.Map(os.system)


@pytest.mark.parametrize(
    ("commands", "stages", "said"),
    [
        (["kill -9 $PPID", WORK], 1, "signal 9"),
        pytest.param(["kill -SEGV $PPID", "true"], 2, "signal 11", marks=pytest.mark.slow),
    ],
    ids=["beside one at work", "later"],
)
def test_a_worker_that_dies_ends_the_job(commands, stages, said, capfd):
    with pytest.raises(InputError, match=f"a worker was killed .{said}"):
        run_pipeline(Shell(*commands, stages=stages), [], Engine(TWO))
    assert capfd.readouterr().err == ""


def test_workers_that_do_not_start(monkeypatch):
    monkeypatch.setattr(engines, "_worker_command", lambda: "exit 3")
    with pytest.raises(InputError, match="a worker ended with exit status 3"):
        run_pipeline(Shell("true"), [], Engine(TWO))


def test_a_worker_ends_with_its_parent():
    waits = "import sys; from beam_pipelines.runtime import boot; boot.end_with(int(sys.argv[1]))"
    leaves = "import os, subprocess, sys; subprocess.Popen("
    leaves += f"[sys.executable, '-c', {waits!r}, str(os.getpid())])"
    # It returns when nobody holds the pipes any more.
    subprocess.run([sys.executable, "-c", leaves], capture_output=True, check=True, timeout=100)
