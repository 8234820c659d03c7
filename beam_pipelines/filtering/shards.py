"""Removes exact duplicates and writes shards: `DIR/<lang>/part-?????-of-?????.tfrecord.gz`.

A record's hash determines its shard and its position in the shard. So equal records meet in one
shard, where all but one are dropped; records are in random order, as training needs; and the bytes
of a shard depend neither on the runner nor on the order of the input.
"""

from __future__ import annotations

import collections
import gzip
import io
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np

from beam_pipelines.filtering import cap
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.reading.find import text_bytes
from beam_pipelines.records import (
    Batch,
    Record,
    ScoredBatch,
    encode_record,
    texts_of,
    write_records,
)
from beam_pipelines.reporting import DUPLICATE, KEPT, OTHER_LANGUAGE, OVER_CAP, ExampleSample
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
    return dict(_plan_language(measured, megabytes_per_shard) for measured in sizes.items())


def _plan_language(measured: tuple[str, int], megabytes_per_shard: int) -> tuple[str, int]:
    language, size = measured
    return language, max(1, math.ceil(size / (megabytes_per_shard * 1_000_000)))


@beam.ptransform_fn
def MeasureShards(batches, megabytes_per_shard: int):
    """PCollection of `Batch` -> PCollection of (language, number of shards), from the text.

    Unsupported languages are counted as one, OTHER_LANGUAGE.

    This is another pass over the records, needed only for files whose records tell their language.
    """
    return (
        batches
        | "Measure" >> beam.Map(_measure)
        | "Sum" >> beam.CombinePerKey(sum)
        | "Divide" >> beam.Map(_plan_language, megabytes_per_shard)
    )


def _folder_of(batch: Batch | ScoredBatch) -> str:
    return batch.language if is_code(batch.language) else OTHER_LANGUAGE


def _measure(batch: Batch) -> tuple[str, int]:
    texts = (text for record in batch.records for text in texts_of(record))
    return _folder_of(batch), sum(len(text.encode("utf-8")) for text in texts)


@beam.ptransform_fn
def WriteShards(
    batches,
    folder: str,
    shards: Mapping[str, int] | beam.pvalue.AsDict,
    record_type: type[Record],
    options: JobOptions,
    temporary: str | None,
):
    """PCollection of `Batch` or `ScoredBatch` -> (counts, examples of what was dropped).

    Counts are `((language, name), number)` with KEPT, DUPLICATE or OVER_CAP as name. A worker holds
    one shard in memory at a time. Languages without any remaining records get no shards; all others
    get all of their shards, even empty ones.

    Args:
      folder: where the language folders go.
      shards: language or OTHER_LANGUAGE -> its number of shards, from `plan_shards`, or a side
        input of this, from `MeasureShards`.
      record_type: the type of a row of `record_kinds.KINDS`.
      temporary: a folder for files, or None; see `shuffle`.
    """
    assigned = batches | "Assign" >> beam.ParDo(AssignShards(_numbers_of), shards, options)
    parts = assigned | "Gather" >> GroupValues(temporary)
    cuts, maximum = {}, options.max_per_language
    if maximum is not None:
        crowded = beam.pvalue.AsDict(batches | "Find crowded" >> cap.FindCrowded(maximum))
        numbers = parts | "Number" >> beam.FlatMap(_number_shard, crowded)
        cuts = beam.pvalue.AsDict(numbers | "Find cuts" >> cap.FindCuts(maximum))
    write = beam.FlatMap(_write_shard, folder, record_type, options, shards, cuts)
    outputs = parts | "Write" >> write.with_outputs("examples", main="counts")
    return outputs.counts, outputs.examples


class AssignShards(beam.DoFn):
    """Batch -> `((folder, shard), rows)`: rows are records, each after its prefix.

    A bundle names each shard of its folders once, with no records, so that all of them exist.
    Unsupported languages share the folder OTHER_LANGUAGE.

    Args:
      prefixes_of: (batch, its serialized records, an argument of the step) -> what goes before each
        record, always of one length.
    """

    def __init__(self, prefixes_of: Callable[..., Iterable[bytes]]) -> None:
        self._prefixes_of = prefixes_of

    def start_bundle(self) -> None:
        self._named: set[str] = set()

    def process(
        self, batch: Batch | ScoredBatch, shards: Mapping[str, int], argument: object
    ) -> Iterator[tuple[_Shard, list[bytes]]]:
        folder = _folder_of(batch)
        parts: list[list[bytes]] = [[] for _ in range(shards[folder])]
        examples = list(map(encode_record, batch.records))
        prefixes = self._prefixes_of(batch, examples, argument)
        for prefix, example in zip(prefixes, examples, strict=True):
            shard = int.from_bytes(hash_of(example)[-8:], "big") % len(parts)
            parts[shard].append(prefix + example)
        is_new = folder not in self._named
        self._named.add(folder)
        for number, part in enumerate(parts):
            if part or is_new:
                yield (folder, number), part


def _numbers_of(
    batch: Batch | ScoredBatch, examples: Sequence[bytes], options: JobOptions
) -> Iterator[bytes]:
    """Yields the numbers of the records for `cap`."""
    if options.max_per_language is None:
        numbers = np.zeros(len(examples), np.uint64)
    else:
        numbers = cap.random_numbers(examples, options.seed)
        if options.best_by is not None:
            numbers = cap.best_first(batch.scores[options.best_by], numbers)
    return map(_NUMBER.pack, numbers)


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


def _write_shard(
    element: tuple[_Shard, Iterable[list[bytes]]],
    folder: str,
    record_type: type[Record],
    options: JobOptions,
    shards: Mapping[str, int],
    cuts: Mapping[str, int],
) -> Iterator:
    (language, number), parts = element
    samples = {
        reason: ExampleSample(options.examples, options.seed) for reason in (DUPLICATE, OVER_CAP)
    }
    counts = collections.Counter()
    distinct: dict[bytes, int] = {}
    for value in (value for part in parts for value in part):
        if (example := _add(distinct, value)) is not None:
            counts[DUPLICATE] += 1
            samples[DUPLICATE].add(example)
    kept, cut = [], cuts.get(language)
    for example, place in distinct.items():
        if cut is None or place <= cut:
            kept.append(example)
        else:
            samples[OVER_CAP].add(example)
    counts[KEPT], counts[OVER_CAP] = len(kept), len(distinct) - len(kept)
    name = f"part-{number:05}-of-{shards[language]:05}.tfrecord.gz"
    write_file(join(folder, language, name), _encode_shard(sorted(kept, key=hash_of)))
    for reason, count in counts.items():
        yield (language, reason), count
    if options.examples:
        for reason, sample in samples.items():
            yield beam.pvalue.TaggedOutput("examples", sample.describe(reason, record_type))


def _encode_shard(examples: Sequence[bytes]) -> bytes:
    content = io.BytesIO()
    # No name or time in the header, so that equal records give equal files.
    with gzip.GzipFile(filename="", mode="wb", fileobj=content, compresslevel=6, mtime=0) as stream:
        write_records(stream, examples)
    return content.getvalue()
