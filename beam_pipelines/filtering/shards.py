"""Removes exact duplicates and writes shards: `DIR/<lang>/part-?????-of-?????.tfrecord.gz`.

A record's hash determines its shard and its position in the shard. So equal records meet in one
shard, where all but one are dropped; records are in random order, as training needs; and the bytes
of a shard depend neither on the runner nor on the order of the input.
"""

from __future__ import annotations

import abc
import collections
import gzip
import io
import math
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np

from beam_pipelines.filtering import cap
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.reading.find import text_bytes
from beam_pipelines.records.records import (
    Batch,
    Record,
    ScoredBatch,
    encode_record,
    texts_of,
    write_records,
)
from beam_pipelines.reporting.report import DUPLICATE, KEPT, OTHER_LANGUAGE, OVER_CAP, ExampleSample
from beam_pipelines.runtime.shuffle import GroupValues, hash_of
from beam_pipelines.runtime.storage import join, write_file
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import is_code

_NUMBER = struct.Struct(">Q")

_Shard = tuple[str, int]  # language, number from 0


def plan_shards(files: Iterable[CorpusFile], megabytes_per_shard: int) -> dict[str, int]:
    """Returns the number of shards for each language, from the sizes of its files.

    The sizes of the files are known before anything is read, so the shards are planned for the
    input, not for what is kept of it. Files of several languages need `MeasureShards`.
    """
    sizes = collections.Counter()
    for file in files:
        sizes[file.language] += text_bytes(file)
    return {language: _shards_of(size, megabytes_per_shard) for language, size in sizes.items()}


class MeasureShards(beam.PTransform):
    """PCollection of `Batch` -> PCollection of (language, number of shards), from the text.

    Unsupported languages are counted as one, OTHER_LANGUAGE.

    This is another pass over the records, needed only for files whose records tell their language.
    """

    def __init__(self, megabytes_per_shard: int) -> None:
        super().__init__()
        self._megabytes_per_shard = megabytes_per_shard

    def expand(self, batches):
        return (
            batches
            | "Measure" >> beam.Map(_measure)
            | "Sum" >> beam.CombinePerKey(sum)
            | "Divide" >> beam.Map(_plan_language, self._megabytes_per_shard)
        )


def _measure(batch: Batch) -> tuple[str, int]:
    texts = (text for record in batch.records for text in texts_of(record))
    language = batch.language if is_code(batch.language) else OTHER_LANGUAGE
    return language, sum(len(text.encode("utf-8")) for text in texts)


def _plan_language(measured: tuple[str, int], megabytes_per_shard: int) -> tuple[str, int]:
    language, size = measured
    return language, _shards_of(size, megabytes_per_shard)


def _shards_of(size: int, megabytes_per_shard: int) -> int:
    return max(1, math.ceil(size / (megabytes_per_shard * 1_000_000)))


class WriteShards(beam.PTransform):
    """PCollection of `Batch` or `ScoredBatch` -> (counts, examples of what was dropped).

    Counts are `((language, name), number)` with KEPT, DUPLICATE or OVER_CAP as name. A worker holds
    one shard in memory at a time. Languages without any remaining records get no shards; all others
    get all of their shards, even empty ones.

    Args:
      folder: where the language folders go.
      shards: language -> its number of shards, see `plan_shards`; or a side input of this,
        see `MeasureShards`.
      record_type: the type of a row of `record_kinds.KINDS`.
      options: those of the job.
      temporary: a folder for files, or None; see `shuffle`.
    """

    def __init__(
        self,
        folder: str,
        shards: Mapping[str, int] | beam.pvalue.AsDict,
        record_type: type[Record],
        options: JobOptions,
        temporary: str | None,
    ) -> None:
        super().__init__()
        self._folder = folder
        self._shards = shards
        self._record_type = record_type
        self._options = options
        self._temporary = temporary

    def expand(self, batches):
        assigned = batches | "Assign" >> beam.ParDo(_AssignNumbered(self._options), self._shards)
        parts = assigned | "Gather" >> GroupValues(self._temporary)
        write = _WriteShard(self._folder, self._record_type, self._options)
        outputs = parts | "Write" >> beam.ParDo(
            write, self._shards, self._find_cuts(batches, parts)
        ).with_outputs("examples", main="counts")
        return outputs.counts, outputs.examples

    def _find_cuts(self, batches, parts) -> Mapping[str, int] | beam.pvalue.AsDict:
        maximum = self._options.max_per_language
        if maximum is None:
            return {}
        crowded = beam.pvalue.AsDict(batches | "Find crowded" >> cap.FindCrowded(maximum))
        cuts = (
            parts
            | "Number" >> beam.FlatMap(_number_shard, crowded)
            | "Find cuts" >> cap.FindCuts(maximum)
        )
        return beam.pvalue.AsDict(cuts)


class AssignShards(beam.DoFn, abc.ABC):
    """Batch -> `((folder, shard), rows)`: rows are records, each after its prefix.

    A bundle names each shard of its folders once, with no records, so that all of them exist.
    Unsupported languages share the folder OTHER_LANGUAGE.
    """

    def start_bundle(self) -> None:
        self._named: set[str] = set()

    def process(
        self, batch: Batch | ScoredBatch, shards: Mapping[str, int]
    ) -> Iterator[tuple[_Shard, list[bytes]]]:
        folder = batch.language if is_code(batch.language) else OTHER_LANGUAGE
        parts: list[list[bytes]] = [[] for _ in range(shards[folder])]
        examples = list(map(encode_record, batch.records))
        for prefix, example in zip(self.prefixes(batch, examples), examples, strict=True):
            shard = int.from_bytes(hash_of(example)[-8:], "big") % len(parts)
            parts[shard].append(prefix + example)
        is_new = folder not in self._named
        self._named.add(folder)
        for number, part in enumerate(parts):
            if part or is_new:
                yield (folder, number), part

    @abc.abstractmethod
    def prefixes(self, batch: Batch | ScoredBatch, examples: list[bytes]) -> Iterable[bytes]:
        """Returns what goes before each record, always of one length."""


class _AssignNumbered(AssignShards):
    """Prefixes are the records' numbers for `cap`."""

    def __init__(self, options: JobOptions) -> None:
        self._options = options

    def prefixes(self, batch: Batch | ScoredBatch, examples: list[bytes]) -> Iterable[bytes]:
        return map(_NUMBER.pack, self._numbers(batch, examples))

    def _numbers(self, batch: Batch | ScoredBatch, examples: list[bytes]) -> np.ndarray:
        if self._options.max_per_language is None:
            return np.zeros(len(examples), np.uint64)
        numbers = cap.random_numbers(examples, self._options.seed)
        if self._options.best_by is None:
            return numbers
        return cap.best_first(batch.scores[self._options.best_by], numbers)


def _number_shard(
    element: tuple[_Shard, Iterable[list[bytes]]], crowded: Mapping[str, int]
) -> Iterator[cap.Numbers]:
    """Yields the numbers of a shard's distinct records, if its language needs a cutoff."""
    (language, _), parts = element
    if language in crowded:
        numbers: dict[bytes, int] = {}
        for value in (value for part in parts for value in part):
            _add(numbers, value)
        yield language, np.array(list(numbers.values()), np.uint64)


def _add(numbers: dict[bytes, int], value: bytes) -> bytes | None:
    """Adds a value of a shard; returns the record if it was already there."""
    example, number = value[_NUMBER.size :], _NUMBER.unpack_from(value)[0]
    known = numbers.get(example)
    # A model's scores of equal records may differ in the last digit.
    numbers[example] = number if known is None else min(known, number)
    return None if known is None else example


class _WriteShard(beam.DoFn):
    def __init__(self, folder: str, record_type: type[Record], options: JobOptions) -> None:
        self._folder = folder
        self._record_type = record_type
        self._options = options

    def process(
        self,
        element: tuple[_Shard, Iterable[list[bytes]]],
        shards: Mapping[str, int],
        cuts: Mapping[str, int],
    ) -> Iterator:
        (language, number), parts = element
        counts = collections.Counter()
        distinct, duplicates = {}, self._sample()
        for value in (value for part in parts for value in part):
            if (example := _add(distinct, value)) is not None:
                counts[DUPLICATE] += 1
                duplicates.add(example)
        kept, over_cap = self._cut(distinct, cuts.get(language))
        counts[KEPT], counts[OVER_CAP] = len(kept), len(distinct) - len(kept)
        name = f"part-{number:05}-of-{shards[language]:05}.tfrecord.gz"
        write_file(join(self._folder, language, name), _encode_shard(sorted(kept, key=hash_of)))
        for name, count in counts.items():
            yield (language, name), count
        if self._options.examples:
            for reason, sample in ((DUPLICATE, duplicates), (OVER_CAP, over_cap)):
                examples = sample.describe(reason, self._record_type)
                yield beam.pvalue.TaggedOutput("examples", examples)

    def _cut(
        self, distinct: Mapping[bytes, int], cut: int | None
    ) -> tuple[Collection[bytes], ExampleSample]:
        """Returns the records to keep, and a sample of the rest."""
        over_cap = self._sample()
        if cut is None:
            return distinct, over_cap
        kept = []
        for example, number in distinct.items():
            if number <= cut:
                kept.append(example)
            else:
                over_cap.add(example)
        return kept, over_cap

    def _sample(self) -> ExampleSample:
        return ExampleSample(self._options.examples, self._options.seed)


def _encode_shard(examples: Sequence[bytes]) -> bytes:
    content = io.BytesIO()
    # No name or time in the header, so that equal records give equal files.
    with gzip.GzipFile(filename="", mode="wb", fileobj=content, compresslevel=6, mtime=0) as stream:
        write_records(stream, examples)
    return content.getvalue()
