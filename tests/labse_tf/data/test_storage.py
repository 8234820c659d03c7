"""Corpora in a store: TensorFlow's own, in memory, stands for gs:// and others."""

from __future__ import annotations

import json

import pytest
import tensorflow as tf
from text_files import write_lines
from tiny_text import sentences_of

from labse_tf.cli.main import main
from labse_tf.data import texts
from labse_tf.data.record_counts import count_records
from labse_tf.errors import InputError
from labse_tf.files import staging, stores
from labse_tf.files.corpus_files import BITEXT, TSV, find_plain_files
from labse_tf.files.local_paths import scheme_of
from labse_tf.files.stores import STORAGE

LANGUAGES = ("de", "th")


@pytest.mark.parametrize(
    ("path", "stored"),
    [("ram://a/b", True), ("gs://b", True), ("/a", False), ("a:b", False), ("file:///a", False)],
)
def test_the_paths_that_are_in_a_store(path, stored):
    assert (scheme_of(path) is not None) is stored


def test_clean_shards_are_found_and_counted_as_on_disk(tmp_path, bitext_dir):
    out, store = tmp_path / "shards", f"ram://{tmp_path.name}"
    inputs = [str(bitext_dir / f"{language}.tsv") for language in LANGUAGES]
    assert main(["corpus", "filter-bitext", *inputs, "--out", str(out)]) == 0
    for path in (path for path in out.rglob("*") if path.is_file()):
        copy = f"{store}/{path.relative_to(out)}"
        tf.io.gfile.makedirs(copy.rpartition("/")[0])
        tf.io.gfile.copy(str(path), copy)
    found, expected = (
        find_plain_files([folder], kind=BITEXT, storage=STORAGE) for folder in (store, str(out))
    )
    assert {file.language for file in found} == set(LANGUAGES)
    assert [file.path.removeprefix(store) for file in found] == [
        file.path.removeprefix(str(out)) for file in expected
    ]
    kept = json.loads((out / "report.json").read_text())["languages"]
    counts = {language: kept[language]["kept"] for language in LANGUAGES}
    assert count_records(found) == count_records(expected) == counts
    # Without the report, they are read.
    tf.io.gfile.remove(f"{store}/report.json")
    assert count_records(found) == counts


def test_text_is_copied_and_schemes_that_training_cannot_read_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(staging.FOLDER, str(tmp_path / "staging"))
    with pytest.raises(InputError, match="no such file or folder"):
        texts.find_files(["ram://nothing/here"], BITEXT, [], key="train.bitext")
    with pytest.raises(InputError, match="TensorFlow cannot read this scheme"):
        texts.find_files(["abfs://bucket/x"], BITEXT, [], key="train.bitext")
    rows = zip(sentences_of("en"), sentences_of("de"), strict=True)
    path = write_lines(tmp_path / "de.tsv", ["\t".join(row) for row in rows])
    stores.send(path, "ram://plain/de.tsv")
    [file] = texts.find_files(["ram://plain"], BITEXT, [], key="train.bitext")
    assert (file.language, file.format) == ("de", TSV)
    with open(file.path, encoding="utf-8") as copy:
        assert copy.read() == path.read_text("utf-8")
