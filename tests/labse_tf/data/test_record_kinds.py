"""A third kind of record is one row of a table: filters, shards, scores and tf.data take it."""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.apply_filters import JobOptions
from beam_pipelines.filters.character_limits import TooShort
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import texts_by_language
from labse_tf.data import streams, texts
from labse_tf.data.record_counts import count_records
from labse_tf.files import record_kinds
from labse_tf.files.corpus_files import describe, find_corpus_files, find_plain_files
from labse_tf.files.record_kinds import BITEXT, MONOLINGUAL, Pair, RecordKind, kind_of_fields

CONTEXTS = "contexts"


class Context(NamedTuple):
    previous: str
    text: str
    next: str
    language: str


RECORDS = [
    Context("Es regnet.", "Wir bleiben zu Hause.", "Morgen gehen wir.", "de"),
    Context("Il pleut.", "Nous restons.", "Demain, on part.", "fr"),
    Context("Wir bleiben.", "Morgen gehen wir.", "Dann ist es schön.", "de"),
]


@pytest.fixture
def third_kind(monkeypatch):
    row = RecordKind(Context, ("previous", "text", "next"))
    monkeypatch.setitem(record_kinds.KINDS, CONTEXTS, row)


def filter_contexts(path, out, shortest, **options):
    options = {"filters": [TooShort(shortest)], "options": JobOptions(**options)}
    return filter_job.run([str(path)], str(out), kind=CONTEXTS, **options)


def test_from_parquet_through_a_filter_job_and_its_scores_to_a_stream(third_kind, tmp_path):
    rows = [*RECORDS, Context("Ja.", "", "Nein.", "de"), RECORDS[0]]
    rows = [{"language_code": one.language, **one._asdict()} for one in rows]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pages.parquet")
    shards = tmp_path / "out"
    report = filter_contexts(tmp_path / "pages.parquet", shards, 3, scores=True)
    assert report["total"]["dropped"]["too_short"] == report["total"]["dropped"]["duplicate"] == 1
    assert sorted(path.name for path in (shards / CONTEXTS).iterdir()) == ["de", "fr"]
    files = find_corpus_files([str(shards)], kind=CONTEXTS)
    assert sorted(record for file in files for record in read_file(file)) == sorted(RECORDS)
    assert "| de | Ja. |  | Nein. |" in (shards / "examples.md").read_text("utf-8")
    files = find_plain_files([str(shards)], kind=CONTEXTS)
    assert count_records(files) == {"de": 2, "fr": 1}
    stream = streams.language_streams(files, seed=1)["fr"]
    [serialized] = stream.batch(1).take(1)
    columns = [column.numpy()[0].decode() for column in texts.parse(CONTEXTS, serialized)]
    assert columns == list(RECORDS[1][:3])
    # The shortest texts of the records have 10, 9 and 12 characters.
    again = filter_contexts(shards / "scores", tmp_path / "again", 10, from_scores=True)
    assert {name: one["kept"] for name, one in again["languages"].items()} == {"de": 2, "fr": 0}


def test_its_row_tells_it_from_other_kinds(tmp_path, third_kind, monkeypatch):
    assert kind_of_fields({"previous", "text", "next"}) == CONTEXTS
    assert kind_of_fields({"text", "language_code"}) == kind_of_fields(()) == MONOLINGUAL
    assert kind_of_fields({"src_raw", "tgt_raw"}) == BITEXT
    assert texts_by_language(RECORDS[1]) == tuple(("fr", text) for text in RECORDS[1][:3])
    assert texts_by_language(Pair("Yes", "Oui", "fr")) == (("en", "Yes"), ("fr", "Oui"))
    monkeypatch.delitem(record_kinds.KINDS, CONTEXTS)
    shard = tmp_path / CONTEXTS / "de" / "part-00000-of-00001.tfrecord.gz"
    assert describe(str(shard)).kind is None
