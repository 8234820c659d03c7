"""Removes exact duplicates and writes shards: `DIR/<lang>/part-?????-of-?????.tfrecord.gz`.

A record's hash decides which shard it goes to and where it stands in it. So equal records meet in
one shard, where all but one are dropped; records come out in a random order, as training wants
it; and the bytes of a shard depend neither on the runner nor on the order of the input.
"""

from __future__ import annotations

import collections
import gzip
import hashlib
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from beam_pipelines import tfrecords
from beam_pipelines.records import Batch, encode_record, texts_of
from beam_pipelines.report import DUPLICATE, KEPT
from beam_pipelines.sizes import text_bytes
from labse_tf.corpus_files import CorpusFile

_Shard = tuple[str, int]  # language, number from 0


def plan_shards(files: Iterable[CorpusFile], megabytes_per_shard: int) -> dict[str, int]:
    """Returns the number of shards for each language, from the sizes of its files.

    The size of the files decides because it is known before anything is read; so it is the input
    that is sized, not what is kept of it. Files of several languages need `MeasureShards`.
    """
    sizes = collections.Counter()
    for file in files:
        sizes[file.language] += text_bytes(file)
    return {language: _shards_of(size, megabytes_per_shard) for language, size in sizes.items()}


class MeasureShards(beam.PTransform):
    """PCollection of `Batch` -> PCollection of (language, number of shards), from the text.

    Another pass over the records, which only files need whose records tell their language.
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
    return batch.language, sum(len(text.encode("utf-8")) for text in texts)


def _plan_language(measured: tuple[str, int], megabytes_per_shard: int) -> tuple[str, int]:
    language, size = measured
    return language, _shards_of(size, megabytes_per_shard)


def _shards_of(size: int, megabytes_per_shard: int) -> int:
    return max(1, math.ceil(size / (megabytes_per_shard * 1_000_000)))


class WriteShards(beam.PTransform):
    """PCollection of `Batch` -> counts, `((language, KEPT or DUPLICATE), number)`.

    A worker holds one shard in memory at a time. Languages of which nothing is left get no shards;
    all others get all of theirs, even if one is empty.

    Args:
      folder: where the language folders go.
      shards: language -> its number of shards, see `plan_shards`; or a side input of this,
        see `MeasureShards`.
    """

    def __init__(self, folder: str, shards: Mapping[str, int] | beam.pvalue.AsDict) -> None:
        super().__init__()
        self._folder = folder
        self._shards = shards

    def expand(self, batches):
        return (
            batches
            | "Assign" >> beam.ParDo(_AssignShards(), self._shards)
            | "Gather" >> beam.GroupByKey()
            | "Write" >> beam.ParDo(_WriteShard(self._folder), self._shards)
        )


class _AssignShards(beam.DoFn):
    def process(
        self, batch: Batch, shards: Mapping[str, int]
    ) -> Iterator[tuple[_Shard, list[bytes]]]:
        count = shards[batch.language]
        parts: list[list[bytes]] = [[] for _ in range(count)]
        for example in map(encode_record, batch.records):
            parts[int.from_bytes(_hash(example)[-8:], "big") % count].append(example)
        for number, part in enumerate(parts):
            yield (batch.language, number), part


class _WriteShard(beam.DoFn):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def process(
        self, element: tuple[_Shard, Iterable[list[bytes]]], shards: Mapping[str, int]
    ) -> Iterator:
        (language, number), parts = element
        found, distinct = 0, set()
        for part in parts:
            found += len(part)
            distinct.update(part)
        name = f"part-{number:05}-of-{shards[language]:05}.tfrecord.gz"
        folder = FileSystems.join(self._folder, language)
        if not FileSystems.exists(folder):
            _make_folder(folder)
        _write_shard(FileSystems.join(folder, name), sorted(distinct, key=_hash))
        yield (language, KEPT), len(distinct)
        yield (language, DUPLICATE), found - len(distinct)


def _hash(example: bytes) -> bytes:
    return hashlib.blake2b(example, digest_size=16).digest()


def _make_folder(folder: str) -> None:
    try:
        FileSystems.mkdirs(folder)
    except OSError:
        # Another worker may have made it meanwhile.
        if not FileSystems.exists(folder):
            raise


def _write_shard(path: str, examples: Sequence[bytes]) -> None:
    content = io.BytesIO()
    # No name and no time in the header: equal records give equal files.
    with gzip.GzipFile(filename="", mode="wb", fileobj=content, compresslevel=6, mtime=0) as stream:
        tfrecords.write_records(stream, examples)
    with FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        file.write(content.getvalue())
