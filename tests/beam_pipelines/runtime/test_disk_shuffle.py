"""The shuffle through files: what GroupByKey gives, while the runner holds places alone."""

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from beam_pipelines.records.records import Batch, Pair, Sentence
from beam_pipelines.runtime import disk_shuffle
from beam_pipelines.runtime.disk_shuffle import GroupOnDisk, HoldOnDisk, SaveValues, load_values

KEYED = [
    (("de", 0), [b"eins", b""]),
    (("ja", 1), ["日本".encode()]),
    (("de", 0), [b"zwei" * 1000]),
    (("am", 0), []),
    (("de", 0), []),
]


@pytest.mark.parametrize("held", [1, 4000, 1_000_000])
def test_groups_as_group_by_key_does(tmp_path, monkeypatch, held):
    monkeypatch.setattr(disk_shuffle, "_MAX_HELD_BYTES", held)
    with TestPipeline() as pipeline:
        grouped = (
            pipeline
            | beam.Create(KEYED, reshuffle=False)
            | GroupOnDisk(str(tmp_path / "files"))
            | beam.MapTuple(lambda key, parts: (key, sorted(v for part in parts for v in part)))
        )
        assert_that(
            grouped,
            equal_to(
                [
                    (("de", 0), [b"", b"eins", b"zwei" * 1000]),
                    (("ja", 1), ["日本".encode()]),
                    (("am", 0), []),
                ]
            ),
        )


def test_what_moves_is_small(tmp_path):
    value = bytes(1_000_000)
    with TestPipeline() as pipeline:
        saved = (
            pipeline
            | beam.Create([("de", [value, value])])
            | SaveValues(str(tmp_path / "files"))
            | beam.MapTuple(lambda _, place: (place[1], place[2] < 1000, load_values(place)))
        )
        assert_that(saved, equal_to([(0, True, [value, value])]))


@pytest.mark.parametrize(
    "batch",
    [
        Batch("hi", [Sentence(f"बारिश {number}", "hi") for number in range(2500)]),
        Batch("xx", [Sentence("a language of none", "xx")]),
        Batch("ru", [Pair("Rain", "Дождь", "ru"), Pair("", "", "ru")]),
    ],
)
def test_held_batches_come_back(tmp_path, batch):
    with TestPipeline() as pipeline:
        records = (
            pipeline
            | beam.Create([batch])
            | HoldOnDisk(str(tmp_path / "files"), type(batch.records[0]))
            | beam.FlatMap(lambda held: [(held.language, record) for record in held.records])
        )
        assert_that(records, equal_to([(batch.language, record) for record in batch.records]))
