"""Writes vectors and their sentences: `DIR/<lang>/part-?????-of-?????.npy` and `.txt.gz`.

The sentences of a language are numbered across all its files, in the order of the files, and each
shard holds the next `sentences_per_shard` of them. So row i of an array is the vector of line i of
the text beside it, and the shards in sequence have the order of the input.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import apache_beam as beam
import numpy as np

from beam_pipelines.embedding.batches import EmbeddedBatch
from beam_pipelines.runtime.shuffle import PackValues, Parcel, unpack_values
from beam_pipelines.runtime.storage import create_file, join

# The count of a language's shards, reported beside the counts of its sentences.
SHARDS = "shards"

_Batch = tuple[str, int, int, int]  # language, file, number of the first sentence, sentences
_Piece = tuple[int, int, Parcel]  # number of the first sentence in its language, sentences


class _Plan(NamedTuple):
    """Where the sentences of a language go.

    Attributes:
      starts: file number -> number of its first sentence within the language.
      total: number of sentences in the language.
    """

    starts: dict[int, int]
    total: int


class WriteVectors(beam.PTransform):
    """PCollection of `EmbeddedBatch` -> PCollection of ((language, SHARDS), 1), one per shard.

    A worker holds one batch in memory at a time.

    Args:
      folder: where the language folders go.
      dtype: of the vectors.
      sentences_per_shard: in all shards of a language but the last.
      temporary: a folder for files, or None; see `shuffle`.
    """

    def __init__(
        self, folder: str, dtype: str, sentences_per_shard: int, temporary: str | None
    ) -> None:
        super().__init__()
        self._folder = folder
        self._dtype = dtype
        self._size = sentences_per_shard
        self._temporary = temporary

    def expand(self, embedded):
        packed = embedded | "Encode" >> beam.Map(_encode) | "Pack" >> PackValues(self._temporary)
        plans = beam.pvalue.AsDict(packed | "Plan" >> _PlanLanguages())
        return (
            packed
            | "Assign" >> beam.FlatMap(_assign, self._size, plans)
            | "Gather" >> beam.GroupByKey()
            | "Write" >> beam.Map(_write_shard, self._folder, self._dtype, self._size, plans)
        )


class _PlanLanguages(beam.PTransform):
    """PCollection of (`_Batch`, `Parcel`) -> PCollection of (language, `_Plan`)."""

    def expand(self, packed):
        return (
            packed
            | "Sizes" >> beam.MapTuple(lambda batch, _: (batch[:2], batch[3]))
            | "Sum" >> beam.CombinePerKey(sum)
            | "By language" >> beam.MapTuple(lambda key, count: (key[0], (key[1], count)))
            | "Gather" >> beam.GroupByKey()
            | "Number" >> beam.MapTuple(lambda language, files: (language, _plan(files)))
        )


def _plan(files: Iterable[tuple[int, int]]) -> _Plan:
    starts, total = {}, 0
    for file, count in sorted(files):
        starts[file] = total
        total += count
    return _Plan(starts, total)


def _encode(batch: EmbeddedBatch) -> tuple[_Batch, list[bytes]]:
    key = (batch.language, batch.file, batch.first, len(batch.texts))
    return key, [batch.vectors.tobytes(), *(text.encode("utf-8") for text in batch.texts)]


def _assign(
    packed: tuple[_Batch, Parcel], size: int, plans: dict[str, _Plan]
) -> Iterator[tuple[tuple[str, int], _Piece]]:
    (language, file, first, count), parcel = packed
    start = plans[language].starts[file] + first
    for shard in range(start // size, (start + count - 1) // size + 1):
        yield (language, shard), (start, count, parcel)


def _write_shard(
    shard: tuple[tuple[str, int], Iterable[_Piece]],
    folder: str,
    dtype: str,
    size: int,
    plans: dict[str, _Plan],
) -> tuple[tuple[str, str], int]:
    (language, number), pieces = shard
    total = plans[language].total
    begin, end = number * size, min(total, (number + 1) * size)
    path = join(folder, language, f"part-{number:05}-of-{-(-total // size):05}")
    next_row = begin
    with (
        create_file(path + ".npy") as array,
        create_file(path + ".txt.gz") as packed,
        # No name or time in the header, so that equal sentences give equal files.
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=packed, mtime=0) as lines,
    ):
        for start, count, parcel in sorted(pieces):
            vectors, texts = _decode(unpack_values(parcel), dtype, count)
            if next_row == begin:
                _write_header(array, (end - begin, vectors.shape[1]), dtype)
            rows = slice(max(0, begin - start), end - start)
            array.write(vectors[rows].tobytes())
            lines.write(b"".join(text + b"\n" for text in texts[rows]))
            next_row += len(texts[rows])
    if next_row != end:
        raise RuntimeError(f"{path} has {next_row - begin} rows, not {end - begin}")
    return (language, SHARDS), 1


def _decode(values: list[bytes], dtype: str, count: int) -> tuple[np.ndarray, list[bytes]]:
    vectors, *texts = values
    return np.frombuffer(vectors, dtype).reshape(count, -1), texts


def _write_header(array, shape: tuple[int, int], dtype: str) -> None:
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(array, header)
