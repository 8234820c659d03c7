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
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from beam_pipelines import tfrecords
from beam_pipelines.records import Batch, encode_record
from beam_pipelines.report import DUPLICATE, KEPT
from labse_tf.corpus_files import CorpusFile
from labse_tf.textio import COMPRESSIONS

# Text of many languages shrinks to a third or a quarter of its size.
_COMPRESSION_FACTOR = 4

_Shard = tuple[str, int]  # language, number from 0


def plan_shards(files: Iterable[CorpusFile], megabytes_per_shard: int) -> dict[str, int]:
    """Returns the number of shards for each language, from the sizes of its files.

    The size of the files decides because it is known before anything is read; compressed files
    count as four times their size. So it is the input that is sized, not what is kept of it.
    """
    sizes = collections.Counter()
    for file in files:
        factor = _COMPRESSION_FACTOR if file.path.endswith(COMPRESSIONS) else 1
        sizes[file.language] += os.path.getsize(file.path) * factor
    shard_bytes = megabytes_per_shard * 1_000_000
    return {language: max(1, math.ceil(size / shard_bytes)) for language, size in sizes.items()}


class WriteShards(beam.PTransform):
    """PCollection of `Batch` -> counts, `((language, KEPT or DUPLICATE), number)`.

    A worker holds one shard in memory at a time. Languages of which nothing is left get no shards;
    all others get all of theirs, even if one is empty.

    Args:
      folder: where the language folders go.
      shards: language -> its number of shards, see `plan_shards`.
    """

    def __init__(self, folder: str, shards: Mapping[str, int]) -> None:
        super().__init__()
        self._folder = folder
        self._shards = dict(shards)

    def expand(self, batches):
        return (
            batches
            | "Assign" >> beam.ParDo(_AssignShards(self._shards))
            | "Gather" >> beam.GroupByKey()
            | "Write" >> beam.ParDo(_WriteShard(self._folder, self._shards))
        )


class _AssignShards(beam.DoFn):
    def __init__(self, shards: dict[str, int]) -> None:
        self._shards = shards

    def process(self, batch: Batch) -> Iterator[tuple[_Shard, list[bytes]]]:
        count = self._shards[batch.language]
        parts: list[list[bytes]] = [[] for _ in range(count)]
        for example in map(encode_record, batch.records):
            parts[int.from_bytes(_hash(example)[-8:], "big") % count].append(example)
        for number, part in enumerate(parts):
            yield (batch.language, number), part


class _WriteShard(beam.DoFn):
    def __init__(self, folder: str, shards: dict[str, int]) -> None:
        self._folder = folder
        self._shards = shards

    def process(self, element: tuple[_Shard, Iterable[list[bytes]]]) -> Iterator:
        (language, number), parts = element
        found, distinct = 0, set()
        for part in parts:
            found += len(part)
            distinct.update(part)
        name = f"part-{number:05}-of-{self._shards[language]:05}.tfrecord.gz"
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
