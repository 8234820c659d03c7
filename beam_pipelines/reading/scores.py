"""Reads the score files that a filter job with --scores writes (filtering/scores.py)."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq

from beam_pipelines.records.records import (
    LANGUAGE_FIELD,
    RECORDS_PER_BATCH,
    Record,
    ScoredBatch,
    field_names,
)
from beam_pipelines.reporting.report import OTHER_LANGUAGE
from beam_pipelines.runtime.errors import input_errors_marked
from beam_pipelines.runtime.storage import open_file
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import PARQUET
from labse_tf.files.storage import LOCAL, Storage
from labse_tf.languages import is_code


class ScoreFile(NamedTuple):
    """A score file, and the name of its folder: a language's code or OTHER_LANGUAGE."""

    path: str
    folder: str

    @property
    def format(self) -> str:
        return PARQUET

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)

    def moved(self, change: Callable[[str], str]) -> ScoreFile:
        """Returns the description of the same file under a changed path."""
        return self._replace(path=change(self.path))


def find_score_files(inputs: Sequence[str], storage: Storage = LOCAL) -> list[ScoreFile]:
    """Returns the score files in the folders `inputs`, sorted by path.

    Raises:
      InputError: if an input is not a folder of scores.
    """
    found = []
    for name in inputs:
        files = []
        for path in storage.walk(storage.resolve(name)):
            folder, _, base = path.rpartition("/")
            folder = folder.removeprefix(storage.resolve(name).rstrip("/") + "/")
            is_part = base.startswith("part-") and base.endswith(".parquet")
            if is_part and (is_code(folder) or folder == OTHER_LANGUAGE):
                files.append(ScoreFile(path, folder))
        if not files:
            raise InputError(
                "contains no scores",
                path=name,
                remedy="name the folder `scores` that a filter job with --scores wrote",
            )
        found += files
    return sorted(set(found))


def have_score(files: Sequence[ScoreFile], name: str) -> bool:
    """Returns whether the filter `name` scored these files, judging by the first of them.

    Raises:
      InputError: if the first file is damaged.
    """
    path = files[0].path
    try:
        with open_file(path) as stream:
            return name in pq.read_schema(stream).names
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def plan_score_shards(files: Sequence[ScoreFile]) -> dict[str, int]:
    """Returns language -> number of shards: as many as there are score files.

    So the output is the same as if the scoring run had used the current thresholds.
    """
    return dict(collections.Counter(file.folder for file in files))


class ReadScores(beam.PTransform):
    """Score files -> PCollection of `ScoredBatch`.

    The scores are those of the filters `names`.

    Raises:
      InputError: when run, if a file is damaged, of another kind, or lacks scores.
    """

    def __init__(
        self, files: Sequence[ScoreFile], names: Sequence[str], record_type: type[Record]
    ) -> None:
        super().__init__()
        self._paths = [file.path for file in files]
        self._read = beam.ParDo(_ReadFile(list(names), record_type))

    def expand(self, begin):
        return (
            begin
            | "Files" >> beam.Create(self._paths, reshuffle=False)
            | "Spread" >> beam.Reshuffle()
            | "Read" >> self._read
        )


class _ReadFile(beam.DoFn):
    def __init__(self, names: list[str], record_type: type[Record]) -> None:
        self._names = names
        self._record_type = record_type

    def process(self, path: str) -> Iterator[ScoredBatch]:
        with input_errors_marked(), open_file(path) as stream:
            try:
                parquet = pq.ParquetFile(stream)
                self._check_columns(parquet.schema_arrow.names, path)
                for table in parquet.iter_batches(RECORDS_PER_BATCH):
                    yield from self._batches(table.to_pydict())
            except (pa.ArrowException, ValueError, OSError) as error:
                raise _damaged(path, error) from error

    def _check_columns(self, names: list[str], path: str) -> None:
        for name in (*field_names(self._record_type), LANGUAGE_FIELD, *self._names):
            if name not in names:
                raise InputError(
                    f"has no column '{name}'",
                    path=path,
                    remedy="filter the corpus again, with this filter and --scores",
                )

    def _batches(self, columns: dict[str, list]) -> Iterator[ScoredBatch]:
        texts = (columns[name] for name in field_names(self._record_type))
        places = collections.defaultdict(list)
        for place, language in enumerate(columns[LANGUAGE_FIELD]):
            places[language].append(place)
        records = list(map(self._record_type, *texts, columns[LANGUAGE_FIELD]))
        for language, chosen in places.items():
            scores = {}
            for name in self._names:
                found = (columns[name][place] for place in chosen)
                scores[name] = [math.nan if score is None else score for score in found]
            yield ScoredBatch(language, [records[place] for place in chosen], scores)


def _damaged(path: str, error: Exception) -> InputError:
    return InputError(
        f"the scores cannot be read ({error})",
        path=path,
        remedy="filter the corpus again with --scores",
    )
