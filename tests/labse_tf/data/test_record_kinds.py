"""A third kind of record is one row of a table: filters, shards, scores and tf.data take it."""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filters.character_limits import TooShort
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records.records import texts_by_language
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


@pytest.fixture
def shards(third_kind, tmp_path):
    """What a filter job with scores leaves of a Parquet file."""
    too_short = Context("Ja.", "", "Nein.", "de")
    rows = [*RECORDS, too_short, RECORDS[0]]
    pq.write_table(pa.Table.from_pylist([_row(record) for record in rows]), path(tmp_path))
    out = tmp_path / "out"
    report = filter_job.run(
        [path(tmp_path)],
        str(out),
        kind=CONTEXTS,
        filters=[TooShort(3)],
        options=JobOptions(scores=True),
    )
    assert report["total"]["dropped"]["too_short"] == report["total"]["dropped"]["duplicate"] == 1
    return out


def _row(record):
    return {"language_code": record.language, **record._asdict()}


def path(folder):
    return str(folder / "pages.parquet")


def test_shards_hold_it(shards):
    assert sorted(p.name for p in (shards / CONTEXTS).iterdir()) == ["de", "fr"]
    files = find_corpus_files([str(shards)], kind=CONTEXTS)
    assert sorted(record for file in files for record in read_file(file)) == sorted(RECORDS)
    example = "| de | Ja. |  | Nein. |"
    assert example in (shards / "examples.md").read_text("utf-8")


def test_scores_are_read_again(shards, tmp_path):
    again = filter_job.run(
        [str(shards / "scores")],
        str(tmp_path / "again"),
        kind=CONTEXTS,
        # The shortest texts of the records have 10, 9 and 12 characters.
        filters=[TooShort(10)],
        options=JobOptions(from_scores=True),
    )
    assert again["languages"]["fr"]["kept"] == 0
    assert again["languages"]["de"]["kept"] == 2


def test_a_stream_gives_its_columns(shards):
    files = find_plain_files([str(shards)], kind=CONTEXTS)
    assert count_records(files) == {"de": 2, "fr": 1}
    stream = streams.language_streams(files, seed=1)["fr"]
    [serialized] = stream.batch(1).take(1)
    columns = [column.numpy()[0].decode() for column in texts.parse(CONTEXTS, serialized)]
    assert columns == list(RECORDS[1][:3])


def test_its_first_field_tells_it_from_sentences(third_kind):
    assert kind_of_fields({"previous", "text", "next"}) == CONTEXTS
    assert kind_of_fields({"text", "language_code"}) == MONOLINGUAL
    assert kind_of_fields({"src_raw", "tgt_raw"}) == BITEXT
    assert kind_of_fields(()) == MONOLINGUAL


def test_languages_of_its_texts(third_kind):
    assert texts_by_language(RECORDS[1]) == tuple(("fr", text) for text in RECORDS[1][:3])
    assert texts_by_language(Pair("Yes", "Oui", "fr")) == (("en", "Yes"), ("fr", "Oui"))


def test_without_the_row_its_folder_is_no_kind(tmp_path):
    shard = tmp_path / CONTEXTS / "de" / "part-00000-of-00001.tfrecord.gz"
    assert describe(str(shard)).kind is None
