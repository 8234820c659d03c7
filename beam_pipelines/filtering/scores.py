"""The scores of all filters for every record, so that thresholds can be changed without scoring.

`DIR/<lang>/part-?????-of-?????.parquet` holds the texts, one column per filter, and the name of the
filter that drops the record at the thresholds of the run. Records in unsupported languages are in
the folder `other_language`, without scores.
"""

from __future__ import annotations

import array
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq

from beam_pipelines.filtering.learning import teach
from beam_pipelines.filtering.shards import AssignShards
from beam_pipelines.filters import AnyFilter, Filter, ModelFilter
from beam_pipelines.records.records import (
    LANGUAGE_FIELD,
    Batch,
    Record,
    ScoredBatch,
    decode_example,
    field_names,
)
from beam_pipelines.reporting.report import OTHER_LANGUAGE
from beam_pipelines.runtime.shuffle import GroupValues, hash_of
from beam_pipelines.runtime.storage import create_file, join
from labse_tf.languages import is_code

REASON = "reason"

_ROWS_AT_ONCE = 10_000


class ScoreBatches(beam.PTransform):
    """PCollection of `Batch` -> `ScoredBatch` with the scores of all filters.

    Filters also score the records that earlier filters drop.

    Args:
      filters: all of the job.
      learned: what those that learn have learned, see `learning.learn`.
    """

    def __init__(
        self, filters: Sequence[AnyFilter], learned: Mapping[str, beam.pvalue.AsDict]
    ) -> None:
        super().__init__()
        self._learned = dict(learned)
        self._models = [filter_ for filter_ in filters if isinstance(filter_, ModelFilter)]
        self._filters = [filter_ for filter_ in filters if not isinstance(filter_, ModelFilter)]

    def expand(self, batches):
        batches = batches | "Filters" >> beam.Map(score_batch, self._filters, **self._learned)
        for model in self._models:
            batches = batches | model.name >> model.scoring_step()
        return batches


def score_batch(batch: Batch, filters: Sequence[Filter], **learned) -> ScoredBatch:
    """Returns the batch with its scores; `learned` is as for `learning.teach`."""
    scores = {}
    if is_code(batch.language):
        for filter_ in teach(filters, learned):
            scores[filter_.name] = list(map(float, filter_.score(batch.records)))
    return ScoredBatch(batch.language, batch.records, scores)


def reasons_by_scores(filters: Sequence[AnyFilter], batch: ScoredBatch) -> list[str | None]:
    """Returns for each record the name of the first filter that does not accept its score."""
    reasons: list[str | None] = [None] * len(batch.records)
    for filter_ in filters:
        for place, score in enumerate(batch.scores[filter_.name]):
            if reasons[place] is None and not filter_.accept(score):
                reasons[place] = filter_.name
    return reasons


class WriteScores(beam.PTransform):
    """PCollection of `ScoredBatch` -> Parquet files, the same for any number of workers.

    A worker holds one file in memory at a time. Records are in the order of their hashes.

    Args:
      folder: where the language folders go.
      shards: language or OTHER_LANGUAGE -> number of files, or a side input of this.
      filters: the filters whose scores the batches hold.
      record_type: the type of a row of `record_kinds.KINDS`.
      temporary: a folder for files, or None; see `shuffle`.
    """

    def __init__(
        self,
        folder: str,
        shards: Mapping[str, int] | beam.pvalue.AsDict,
        filters: Sequence[AnyFilter],
        record_type: type[Record],
        temporary: str | None,
    ) -> None:
        super().__init__()
        self._temporary = temporary
        self._folder = folder
        self._shards = shards
        self._filters = list(filters)
        self._record_type = record_type

    def expand(self, batches):
        return (
            batches
            | "Assign" >> beam.ParDo(_AssignScored(self._filters), self._shards)
            | "Gather" >> GroupValues(self._temporary)
            | "Write" >> beam.ParDo(self._writer(), self._shards)
        )

    def _writer(self) -> beam.DoFn:
        names = [filter_.name for filter_ in self._filters]
        return _WriteShard(self._folder, names, field_names(self._record_type))


class _AssignScored(AssignShards):
    """Prefixes are the scores and the reason's number, as bytes, which need little memory."""

    def __init__(self, filters: list[AnyFilter]) -> None:
        self._filters = filters
        self._numbers = {filter_.name: number for number, filter_ in enumerate(filters)}

    def prefixes(self, batch: ScoredBatch, examples: list[bytes]) -> Iterator[bytes]:
        return (array.array("d", numbers).tobytes() for numbers in self._rows_of_numbers(batch))

    def _rows_of_numbers(self, batch: ScoredBatch) -> Iterator[tuple[float, ...]]:
        if not batch.scores:
            yield from [(math.nan,) * (len(self._filters) + 1)] * len(batch.records)
            return
        reasons = reasons_by_scores(self._filters, batch)
        numbers = [self._numbers.get(reason, math.nan) for reason in reasons]
        columns = [batch.scores[filter_.name] for filter_ in self._filters]
        yield from zip(*columns, numbers, strict=True)


class _WriteShard(beam.DoFn):
    def __init__(self, folder: str, names: list[str], fields: tuple[str, ...]) -> None:
        self._folder = folder
        self._names = names
        self._fields = fields

    def process(
        self, element: tuple[tuple[str, int], Iterable[list[bytes]]], shards: Mapping[str, int]
    ) -> None:
        (folder, number), parts = element
        start = 8 * (len(self._names) + 1)
        rows = sorted(
            (row for part in parts for row in part), key=lambda row: (hash_of(row[start:]), row)
        )
        name = f"part-{number:05}-of-{shards[folder]:05}.parquet"
        path = join(self._folder, folder, name)
        schema = self._schema()
        with create_file(path) as stream, pq.ParquetWriter(stream, schema) as writer:
            for first in range(0, len(rows), _ROWS_AT_ONCE):
                decoded = [self._decode(row, start) for row in rows[first : first + _ROWS_AT_ONCE]]
                columns = zip(schema, zip(*decoded, strict=True), strict=True)
                arrays = [pa.array(values, column.type) for column, values in columns]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))

    def _schema(self) -> pa.Schema:
        texts = [(name, pa.string()) for name in (*self._fields, LANGUAGE_FIELD)]
        scores = [(name, pa.float64()) for name in self._names]
        return pa.schema([*texts, *scores, (REASON, pa.string())])

    def _decode(self, row: bytes, start: int) -> tuple:
        features = decode_example(row[start:])
        *scores, reason = array.array("d", row[:start])
        known = is_code(features[LANGUAGE_FIELD])
        if known:
            name = None if math.isnan(reason) else self._names[int(reason)]
        else:
            scores, name = [None] * len(scores), OTHER_LANGUAGE
        return (*(features[field] for field in (*self._fields, LANGUAGE_FIELD)), *scores, name)
