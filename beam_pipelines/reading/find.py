"""Finds a job's input, corpora and scores, on disk or in a store; reads scores.

Score files are those that a filter job with --scores writes (filtering/scores.py).
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator, Sequence

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq

from beam_pipelines.records import (
    LANGUAGE_FIELD,
    RECORDS_PER_BATCH,
    Record,
    ScoredBatch,
    field_names,
)
from beam_pipelines.reporting import OTHER_LANGUAGE
from beam_pipelines.runtime.errors import input_errors_marked
from beam_pipelines.runtime.storage import REPORT, STORAGE, join, open_file, scheme_of
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import (
    ALL_FORMATS,
    PARQUET,
    SHARD,
    ZIP,
    CorpusFile,
    find_corpus_files,
)
from labse_tf.files.textio import COMPRESSIONS
from labse_tf.languages import is_code

# Text in many languages is compressed to a third or a quarter of its size.
_COMPRESSION_FACTOR = 4


def find_files(
    inputs: Sequence[str], *, kind: str | None = None, formats: tuple[str, ...] = ALL_FORMATS
) -> list[CorpusFile]:
    """Same as `find_corpus_files`; raises InputError for shards of a job that has not ended."""
    files = find_corpus_files(inputs, kind=kind, formats=formats, storage=STORAGE)
    _check_complete(file.path for file in files if file.format == SHARD)
    return files


def find_scores(inputs: Sequence[str]) -> list[CorpusFile]:
    """Returns the score files in the folders `inputs`, sorted by path.

    Their language is the name of their folder: a code or OTHER_LANGUAGE.

    Raises:
      InputError: if an input is not a folder of scores, or its job has not ended.
    """
    found = []
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
        found += files
    _check_complete(file.path for file in found)
    return sorted(set(found))


def _check_complete(paths: Iterable[str]) -> None:
    """Checks the jobs that wrote DIR/KIND/<lang>/FILE. On disk, DIR is there only when it is."""
    for folder in sorted({path.rsplit("/", 3)[0] for path in paths if scheme_of(path)}):
        if not STORAGE.exists(join(folder, REPORT)):
            problem = f"has no {REPORT}: the job that writes it has not ended, or failed"
            remedy = f"run it again; or, if you copied its output, copy {REPORT} too"
            raise InputError(problem, path=folder, remedy=remedy)


def text_bytes(file: CorpusFile) -> int:
    """Returns the approximate bytes of text in a file: four times its size if it is compressed."""
    compressed = file.format in (PARQUET, ZIP) or file.path.lower().endswith(COMPRESSIONS)
    factor = _COMPRESSION_FACTOR if compressed else 1
    return factor * sum(map(STORAGE.size, file.paths))


def have_score(files: Sequence[CorpusFile], name: str) -> bool:
    """Returns whether the filter `name` scored these files, judging by the first of them."""
    path = files[0].path
    try:
        with open_file(path) as stream:
            return name in pq.read_schema(stream).names
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def plan_score_shards(files: Sequence[CorpusFile]) -> dict[str, int]:
    """Returns language -> number of shards: as many as if the scoring run had written them."""
    return dict(collections.Counter(file.language for file in files))


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
    fields = field_names(record_type)
    with input_errors_marked(), open_file(path) as stream:
        try:
            parquet = pq.ParquetFile(stream)
            for name in (*fields, LANGUAGE_FIELD, *names):
                if name not in parquet.schema_arrow.names:
                    remedy = "filter the corpus again, with this filter and --scores"
                    raise InputError(f"has no column '{name}'", path=path, remedy=remedy)
            for table in parquet.iter_batches(RECORDS_PER_BATCH):
                columns = table.to_pydict()
                languages = columns[LANGUAGE_FIELD]
                records = list(map(record_type, *(columns[name] for name in fields), languages))
                for language in dict.fromkeys(languages):
                    rows = [row for row, one in enumerate(languages) if one == language]
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
