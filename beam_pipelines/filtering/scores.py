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

from beam_pipelines.filtering.apply_filters import reasons_by_scores
from beam_pipelines.filtering.shards import AssignShards
from beam_pipelines.filters import AnyFilter
from beam_pipelines.records import (
    LANGUAGE_FIELD,
    Record,
    ScoredBatch,
    decode_example,
    field_names,
)
from beam_pipelines.reporting import OTHER_LANGUAGE
from beam_pipelines.runtime.shuffle import GroupValues, hash_of
from beam_pipelines.runtime.storage import create_file, join
from labse_tf.languages import is_code

REASON = "reason"

_ROWS_AT_ONCE = 10_000


@beam.ptransform_fn
def WriteScores(
    batches,
    folder: str,
    shards: Mapping[str, int] | beam.pvalue.AsDict,
    filters: Sequence[AnyFilter],
    record_type: type[Record],
    temporary: str | None,
):
    """PCollection of `ScoredBatch` -> Parquet files, the same for any number of workers.

    A worker holds one file in memory at a time. Records are in the order of their hashes. The
    batches hold the scores of `filters`; the other arguments are those of `WriteShards`.
    """
    names, fields = [filter_.name for filter_ in filters], field_names(record_type)
    return (
        batches
        | "Assign" >> beam.ParDo(AssignShards(_scores_of), shards, filters)
        | "Gather" >> GroupValues(temporary)
        | "Write" >> beam.Map(_write_file, folder, names, fields, shards)
    )


def _scores_of(
    batch: ScoredBatch, examples: Sequence[bytes], filters: Sequence[AnyFilter]
) -> Iterator[bytes]:
    """Yields the scores of each record and its reason's number, as bytes: they need little memory.

    The number is NaN for a record without a reason; so are all numbers without scores.
    """
    if not batch.scores:
        rows = [(math.nan,) * (len(filters) + 1)] * len(examples)
    else:
        numbers = {filter_.name: number for number, filter_ in enumerate(filters)}
        reasons = [numbers.get(name, math.nan) for name in reasons_by_scores(filters, batch)]
        rows = zip(*(batch.scores[name] for name in numbers), reasons, strict=True)
    return (array.array("d", row).tobytes() for row in rows)


def _write_file(
    element: tuple[tuple[str, int], Iterable[list[bytes]]],
    folder: str,
    names: Sequence[str],
    fields: Sequence[str],
    shards: Mapping[str, int],
) -> None:
    (language, number), parts = element
    start = 8 * (len(names) + 1)
    rows = sorted(
        (row for part in parts for row in part), key=lambda row: (hash_of(row[start:]), row)
    )
    schema = pa.schema(
        [
            *((name, pa.string()) for name in (*fields, LANGUAGE_FIELD)),
            *((name, pa.float64()) for name in names),
            (REASON, pa.string()),
        ]
    )
    path = join(folder, language, f"part-{number:05}-of-{shards[language]:05}.parquet")
    with create_file(path) as stream, pq.ParquetWriter(stream, schema) as writer:
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            decoded = [
                _decode(row[:start], row[start:], names, fields)
                for row in rows[first : first + _ROWS_AT_ONCE]
            ]
            columns = zip(schema, zip(*decoded, strict=True), strict=True)
            arrays = [pa.array(values, column.type) for column, values in columns]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _decode(numbers: bytes, example: bytes, names: Sequence[str], fields: Sequence[str]) -> tuple:
    features = decode_example(example)
    *scores, reason = array.array("d", numbers)
    if is_code(features[LANGUAGE_FIELD]):
        name = None if math.isnan(reason) else names[int(reason)]
    else:
        scores, name = [None] * len(scores), OTHER_LANGUAGE
    return (*(features[field] for field in (*fields, LANGUAGE_FIELD)), *scores, name)
