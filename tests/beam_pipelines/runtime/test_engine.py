"""What follows from the engine that a user's Beam options name."""

from __future__ import annotations

import os

import numpy as np
import pytest

from beam_pipelines import filter_bitext, quality_model
from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filters.low_quality import LowQuality
from beam_pipelines.quality_model import BITS, QualityModel
from beam_pipelines.runtime.engine import Engine
from beam_pipelines.runtime.errors import is_interruption
from beam_pipelines.runtime.flink import ask
from beam_pipelines.runtime.storage import absolute, write_file
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import MONOLINGUAL

# Nobody listens on the discard port.
NOBODY = "127.0.0.1:9"
PORTABLE = ["--runner=PortableRunner", f"--job_endpoint={NOBODY}"]
HERE = {
    "default": [],
    "direct": ["--runner=direct"],
    "whole name": ["--runner=apache_beam.runners.direct.direct_runner.DirectRunner"],
    "workers in this process": [*PORTABLE, "--environment_type=LOOPBACK"],
    "a Flink that Beam starts": ["--runner=FlinkRunner"],
}


@pytest.mark.parametrize("options", HERE.values(), ids=HERE)
def test_engines_of_this_machine(options):
    engine = Engine(options)
    assert not engine.is_distributed
    assert engine.arguments == options
    assert engine.shuffle_folder("folder") == "folder"
    engine.check_paths(["de.tsv", "s3://bucket/de.tsv"])


def test_on_a_cluster_the_engine_carries_data_and_needs_paths_that_workers_reach():
    engine = Engine(PORTABLE)
    assert engine.is_distributed and engine.shuffle_folder("folder") is None
    engine.check_paths(["s3://bucket/de.tsv", "gs://bucket/out", "HDFS://folder"])
    for path in ("de.tsv", "/data/de.tsv", "file:///data/de.tsv"):
        with pytest.raises(InputError, match="workers of PortableRunner") as caught:
            engine.check_paths(["s3://bucket/de.tsv", path])
        assert caught.value.path == path and "--shared-filesystem" in caught.value.remedy
    Engine([*PORTABLE, "--shared-filesystem"]).check_paths(["de.tsv"])


def test_a_model_that_workers_do_not_reach_is_refused(tmp_path):
    model = QualityModel(np.zeros(1 << BITS, np.float32), 0.0)
    quality_model.save(model, tmp_path, {})
    with pytest.raises(InputError, match="cannot reach") as caught:
        filter_job.run(
            ["s3://bucket/de.txt"],
            "s3://bucket/out",
            kind=MONOLINGUAL,
            filters=[LowQuality(tmp_path)],
            options=JobOptions(beam_options=PORTABLE),
        )
    assert caught.value.path == str(tmp_path)


def test_paths_for_workers_do_not_depend_on_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute("de.tsv") == os.path.join(tmp_path, "de.tsv")
    assert absolute("s3://bucket/de.tsv") == "s3://bucket/de.tsv"


def test_a_cluster_that_does_not_answer(tmp_path):
    options = ["--runner=FlinkRunner", f"--flink_master={NOBODY}", "--shared-filesystem"]
    with pytest.raises(InputError, match="no Flink cluster answers at 127.0.0.1:9"):
        filter_bitext.run(["de.tsv"], str(tmp_path / "out"), beam_options=options)
    with pytest.raises(InputError, match="no Flink cluster"):
        ask(f"http://{NOBODY}/", "/overview")


def test_an_option_of_a_store_that_is_missing():
    with pytest.raises(InputError, match="cannot read hdfs://") as caught:
        filter_bitext.run(["hdfs://folder"], "out")
    assert "--hdfs_host" in caught.value.remedy


def test_an_interruption_is_found_behind_the_errors_that_it_causes():
    error = ValueError("Cannot invoke RPC on closed channel!")
    assert not is_interruption(error)
    error.__context__ = KeyboardInterrupt()
    assert is_interruption(error)


def test_a_file_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_file("scores.tsv", b"content")
    write_file("new/scores.tsv", b"more")
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["scores.tsv"]
    assert (tmp_path / "scores.tsv").read_bytes() == b"content"
    assert (tmp_path / "new" / "scores.tsv").read_bytes() == b"more"
