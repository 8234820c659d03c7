"""The shuffle of parcels: what GroupByKey gives, while the direct runner holds places alone."""

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from beam_pipelines.records import Batch, Pair, Sentence
from beam_pipelines.runtime import shuffle
from beam_pipelines.runtime.shuffle import (
    GroupValues,
    HoldBatches,
    PackValues,
    unpack_all,
    unpack_values,
)

KEYED = [
    (("de", 0), [b"eins", b""]),
    (("ja", 1), ["日本".encode()]),
    (("de", 0), [b"zwei" * 1000]),
    (("am", 0), []),
    (("de", 0), []),
]


@pytest.fixture(params=["in files", "by the engine"])
def carrier(request, tmp_path):
    return str(tmp_path / "files") if request.param == "in files" else None


@pytest.mark.parametrize("held", [1, 4000])
def test_groups_as_group_by_key_does(carrier, monkeypatch, held):
    monkeypatch.setattr(shuffle, "_MAX_HELD_BYTES", held)
    with TestPipeline() as pipeline:
        grouped = (
            pipeline
            | beam.Create(KEYED, reshuffle=False)
            | GroupValues(carrier)
            | beam.MapTuple(lambda key, parcels: (key, sorted(unpack_all(parcels))))
        )
        german = (("de", 0), [b"", b"eins", b"zwei" * 1000])
        others = [(("ja", 1), ["日本".encode()]), (("am", 0), [])]
        assert_that(grouped, equal_to([german, *others]))


def test_what_moves_is_small(tmp_path):
    value = bytes(1_000_000)
    with TestPipeline() as pipeline:
        saved = (
            pipeline
            | beam.Create([("de", [value, value])])
            | PackValues(str(tmp_path / "files"))
            | beam.MapTuple(lambda _, place: (place[1], place[2] < 1000, unpack_values(place)))
        )
        assert_that(saved, equal_to([(0, True, [value, value])]))


@pytest.mark.parametrize(
    "batch",
    [
        Batch("hi", [Sentence(f"बारिश {number}", "hi") for number in range(2500)]),
        Batch("ru", [Pair("Rain", "Дождь", "ru"), Pair("", "", "ru")]),
    ],
)
def test_held_batches_come_back(carrier, batch):
    with TestPipeline() as pipeline:
        records = (
            pipeline
            | beam.Create([batch])
            | HoldBatches(carrier, type(batch.records[0]))
            | beam.FlatMap(lambda held: [(held.language, record) for record in held.records])
        )
        assert_that(records, equal_to([(batch.language, record) for record in batch.records]))
