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
from beam_pipelines.reading.find import check_complete
from beam_pipelines.records import (
    LANGUAGE_FIELD,
    RECORDS_PER_BATCH,
    Record,
    ScoredBatch,
    decode_example,
    field_names,
)
from beam_pipelines.reporting import OTHER_LANGUAGE
from beam_pipelines.runtime.errors import input_errors_marked
from beam_pipelines.runtime.shuffle import GroupValues, Parcel, hash_of, unpack_all
from beam_pipelines.runtime.storage import STORAGE, create_file, join, open_file
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import PARQUET, CorpusFile
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
    rows = [(math.nan,) * (len(filters) + 1)] * len(examples)
    if batch.scores:
        numbers = {filter_.name: number for number, filter_ in enumerate(filters)}
        reasons = [numbers.get(name, math.nan) for name in reasons_by_scores(filters, batch)]
        rows = zip(*(batch.scores[name] for name in numbers), reasons, strict=True)
    return (array.array("d", row).tobytes() for row in rows)


def _write_file(
    element: tuple[tuple[str, int], Iterable[Parcel]],
    folder: str,
    names: Sequence[str],
    fields: Sequence[str],
    shards: Mapping[str, int],
) -> None:
    (language, number), parcels = element
    start = 8 * (len(names) + 1)
    rows = sorted(unpack_all(parcels), key=lambda row: (hash_of(row[start:]), row))
    types = dict.fromkeys((*fields, LANGUAGE_FIELD), pa.string())
    types |= {**dict.fromkeys(names, pa.float64()), REASON: pa.string()}
    schema = pa.schema(list(types.items()))
    path = join(folder, language, f"part-{number:05}-of-{shards[language]:05}.parquet")
    with create_file(path) as stream, pq.ParquetWriter(stream, schema) as writer:
        for first in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[first : first + _ROWS_AT_ONCE]
            decoded = [_decode(row[:start], row[start:], names, fields) for row in some]
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


def find_scores(inputs: Sequence[str]) -> list[CorpusFile]:
    """Returns the score files in the folders `inputs`, sorted by path.

    Their language is the name of their folder: a code or OTHER_LANGUAGE.

    Raises:
      InputError: if an input is not a folder of scores, or its job has not ended.
    """
    found = set()
    for name in inputs:
        root = STORAGE.resolve(name).rstrip("/") + "/"
        files = []
        for path in STORAGE.walk(STORAGE.resolve(name)):
            folder, _, base = path.removeprefix(root).rpartition("/")
            is_part = base.startswith("part-") and base.endswith(".parquet")
            if is_part and (is_code(folder) or folder == OTHER_LANGUAGE):
                files.append(CorpusFile(path, folder, None, PARQUET))
        if not files:
            remedy = "name the folder `scores` that a filter job with --scores wrote"
            raise InputError("contains no scores", path=name, remedy=remedy)
        found.update(files)
    check_complete(file.path for file in found)
    return sorted(found)


def have_score(files: Sequence[CorpusFile], name: str) -> bool:
    """Returns whether the filter `name` scored these files, judging by the first of them."""
    path = files[0].path
    try:
        with open_file(path) as stream:
            return name in pq.read_schema(stream).names
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


@beam.ptransform_fn
def ReadScores(begin, files: Sequence[CorpusFile], names: Sequence[str], record_type: type[Record]):
    """Score files -> PCollection of `ScoredBatch` with the scores of the filters `names`."""
    return (
        begin
        | "Files" >> beam.Create([file.path for file in files], reshuffle=False)
        | "Spread" >> beam.Reshuffle()
        | "Read" >> beam.FlatMap(_read_scores, list(names), record_type)
    )


def _read_scores(path: str, names: list[str], record_type: type[Record]) -> Iterator[ScoredBatch]:
    fields = (*field_names(record_type), LANGUAGE_FIELD)
    with input_errors_marked(), open_file(path) as stream:
        try:
            parquet = pq.ParquetFile(stream)
            for name in (*fields, *names):
                if name not in parquet.schema_arrow.names:
                    remedy = "filter the corpus again, with this filter and --scores"
                    raise InputError(f"has no column '{name}'", path=path, remedy=remedy)
            for table in parquet.iter_batches(RECORDS_PER_BATCH):
                columns = table.to_pydict()
                records = list(map(record_type, *(columns[name] for name in fields)))
                for language in dict.fromkeys(columns[LANGUAGE_FIELD]):
                    rows = [n for n, record in enumerate(records) if record.language == language]
                    scores = {
                        name: [
                            math.nan if columns[name][row] is None else columns[name][row]
                            for row in rows
                        ]
                        for name in names
                    }
                    yield ScoredBatch(language, [records[row] for row in rows], scores)
        except (pa.ArrowException, ValueError, OSError) as error:
            raise _damaged(path, error) from error


def _damaged(path: str, error: Exception) -> InputError:
    remedy = "filter the corpus again with --scores"
    return InputError(f"the scores cannot be read ({error})", path=path, remedy=remedy)
