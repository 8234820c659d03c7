"""Beam jobs whose input and output are in HDFS, on the direct runner and on a cluster.

`make cluster-test` starts both and sets LABSE_TEST_HDFS and LABSE_TEST_FLINK to their addresses.
"""

from __future__ import annotations

import os

import pytest
from text_files import content_of, write_lines
from tiny_text import FOREIGN, sentences_of

from beam_pipelines import build_vocab, embed_texts, filter_bitext
from beam_pipelines.runtime.storage import STORAGE, configure, open_file, remove, write_file
from labse_tf.errors import InputError

ADDRESS = os.environ.get("LABSE_TEST_HDFS")
FLINK = os.environ.get("LABSE_TEST_FLINK")
pytestmark = pytest.mark.skipif(ADDRESS is None, reason="no HDFS: run make cluster-test")
ROOT = "hdfs://labse"


@pytest.fixture
def options():
    host, _, port = ADDRESS.partition(":")
    options = [f"--hdfs_host={host}", f"--hdfs_port={port}", "--hdfs_user=labse"]
    configure(options)
    remove(ROOT)
    yield options
    configure([])


@pytest.fixture
def corpus(tmp_path, options):
    """The same pairs on disk and in HDFS."""
    for language in FOREIGN:
        pairs = map("\t".join, zip(sentences_of("en"), sentences_of(language), strict=True))
        path = write_lines(tmp_path / "in" / f"{language}.tsv", [*pairs] * 3)
        write_file(f"{ROOT}/in/{path.name}", path.read_bytes())
    return tmp_path / "in"


def test_how_files_are_found(options):
    names = ["w/a/_SUCCESS", "w/a/x.txt", "w/b/c/y.txt"]
    for name in names:
        write_file(f"{ROOT}/{name}", b"" if name.endswith("SUCCESS") else b"text")
    assert STORAGE.walk(f"{ROOT}/w") == [f"{ROOT}/{name}" for name in names]
    assert STORAGE.glob(f"{ROOT}/w/*/x.txt") == [f"{ROOT}/w/a/x.txt"]
    assert STORAGE.glob(f"{ROOT}/w/*/*/*.txt") == [f"{ROOT}/w/b/c/y.txt"]
    assert STORAGE.glob(f"{ROOT}/w/a/*.txt") == [f"{ROOT}/w/a/x.txt"]
    assert STORAGE.exists(f"{ROOT}/w/a/x.txt") and not STORAGE.exists(f"{ROOT}/none")
    assert STORAGE.is_dir(f"{ROOT}/w") and STORAGE.walk(f"{ROOT}/none") == []


def content_in_hdfs(folder):
    """Returns the bytes of each file under a folder."""
    paths = STORAGE.walk(f"{ROOT}/{folder}")
    return {path.removeprefix(f"{ROOT}/{folder}/"): open_file(path).read() for path in paths}


@pytest.mark.parametrize("engine", ["direct", "flink"])
def test_pairs_then_a_vocabulary(options, corpus, tmp_path, engine):
    if engine == "flink":
        options = [*options, "--runner=FlinkRunner", f"--flink_master={FLINK}"]
    here = filter_bitext.run([str(corpus)], str(tmp_path / "clean"), scores=True)
    inputs, beam = [f"{ROOT}/in/*.tsv"], {"beam_options": options}
    assert filter_bitext.run(inputs, f"{ROOT}/clean", scores=True, **beam) == here
    assert content_in_hdfs("clean") == content_of(tmp_path / "clean")
    sizes = {"vocab_size": 400, "max_unique_chars": 100}
    beam["counts"] = f"{ROOT}/counts"
    tokens = build_vocab.run([f"{ROOT}/clean"], f"{ROOT}/vocab.txt", **beam, **sizes)
    assert tokens == build_vocab.run([str(tmp_path / "clean")], str(tmp_path / "v"), **sizes)
    with pytest.raises(InputError, match="not empty"):
        filter_bitext.run([f"{ROOT}/in"], f"{ROOT}/clean", beam_options=options)


def test_vectors_by_a_model_in_hdfs(options, model_dir, tmp_path):
    text = tmp_path / "text"
    for language in FOREIGN:
        write_lines(text / f"{language}.txt", sentences_of(language))
    for folder, name in ((text, "text"), (model_dir, "model")):
        for path, content in content_of(folder).items():
            write_file(f"{ROOT}/{name}/{path}", content)
    shards = {"sentences_per_shard": 20}
    embed_texts.run([str(text)], str(tmp_path / "vectors"), model=str(model_dir), **shards)
    there, model = f"{ROOT}/vectors", f"{ROOT}/model"
    embed_texts.run([f"{ROOT}/text"], there, model=model, beam_options=options, **shards)
    kept, expected = content_in_hdfs("vectors"), content_of(tmp_path / "vectors")
    assert kept.pop("report.json") != expected.pop("report.json")  # The model's path.
    assert kept == expected
