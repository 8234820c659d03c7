"""Shuffles that keep the data in files: the runner moves and holds only positions in these files.

Beam's direct runner holds in its main process everything before a GroupByKey and everything that
waits for a side input, so its memory would grow with the corpus. Other runners have less to move.
The files are in a folder that all workers can access, like the output; the caller removes it.
"""

from __future__ import annotations

import collections
import struct
import uuid
from collections.abc import Hashable, Iterable, Iterator

import apache_beam as beam
import zstandard
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.transforms.window import GlobalWindows

from beam_pipelines.records.records import (
    RECORDS_PER_BATCH,
    Batch,
    Record,
    build_record,
    encode_record,
)
from beam_pipelines.records.tf_example import decode_example
from beam_pipelines.runtime.storage import make_folder

# How much a worker holds before it writes a file.
_MAX_HELD_BYTES = 32_000_000
# Memory overhead of a value.
_BYTES_PER_VALUE = 50
_LENGTH = struct.Struct("<Q")

Place = tuple[str, int, int]  # path, first byte, number of bytes
Keyed = tuple[Hashable, list[bytes]]


class GroupOnDisk(beam.PTransform):
    """PCollection of `(key, values)` -> `(key, Parts)`, one for each key.

    Values are lists of bytes. A key is returned even if all of its lists are empty.

    Args:
      folder: where the files go.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, keyed):
        return (
            keyed
            | "Save" >> SaveValues(self._folder)
            | "Group" >> beam.GroupByKey()
            | "Find" >> beam.MapTuple(lambda key, places: (key, Parts(places)))
        )


class SaveValues(beam.PTransform):
    """PCollection of `(key, values)` -> `(key, Place)`; a key may occur several times."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def expand(self, keyed):
        return keyed | beam.ParDo(_Save(self._folder))


class HoldOnDisk(beam.PTransform):
    """PCollection of `Batch` -> the same records in other batches.

    For data that is used only after all of it has been seen, as with a side input.
    """

    def __init__(self, folder: str, record_type: type[Record]) -> None:
        super().__init__()
        self._folder = folder
        self._record_type = record_type

    def expand(self, batches):
        return (
            batches
            | "Encode" >> beam.Map(_encode_batch)
            | "Save" >> SaveValues(self._folder)
            # Makes what follows a separate step, before which only places are held.
            | "Wait" >> beam.Reshuffle()
            | "Load" >> beam.FlatMap(_load_batches, self._record_type)
        )


class Parts:
    """An iterable of lists of values, which are loaded one at a time."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._places = list(places)

    def __iter__(self) -> Iterator[list[bytes]]:
        return map(load_values, self._places)


def load_values(place: Place) -> list[bytes]:
    """Returns the values that `SaveValues` saved there."""
    path, start, length = place
    with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        stream.seek(start)
        return list(_split(zstandard.decompress(stream.read(length))))


class _Save(beam.DoFn):
    def __init__(self, folder: str) -> None:
        self._folder = folder

    def start_bundle(self) -> None:
        self._held: dict[Hashable, list[bytes]] = collections.defaultdict(list)
        self._size = 0

    def process(self, element: Keyed) -> Iterator[tuple[Hashable, Place]]:
        key, values = element
        self._held[key] += values
        self._size += sum(map(len, values)) + _BYTES_PER_VALUE * len(values)
        if self._size >= _MAX_HELD_BYTES:
            yield from self._write()

    def finish_bundle(self) -> Iterator:
        yield from map(GlobalWindows.windowed_value, self._write())

    def _write(self) -> list[tuple[Hashable, Place]]:
        held = self._held
        self.start_bundle()
        if not held:
            return []
        make_folder(self._folder)
        # If failed work is repeated, it writes another file, and the first one is never read.
        path = FileSystems.join(self._folder, uuid.uuid4().hex)
        places, start = [], 0
        with FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
            for key, values in held.items():
                data = zstandard.compress(_join(values), level=1)
                stream.write(data)
                places.append((key, (path, start, len(data))))
                start += len(data)
        return places


def _join(values: list[bytes]) -> bytes:
    return b"".join(piece for value in values for piece in (_LENGTH.pack(len(value)), value))


def _split(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        [length] = _LENGTH.unpack_from(data, start)
        start += _LENGTH.size
        yield data[start : start + length]
        start += length


def _encode_batch(batch: Batch) -> Keyed:
    return batch.language, list(map(encode_record, batch.records))


def _load_batches(element: tuple[str, Place], record_type: type[Record]) -> Iterator[Batch]:
    language, place = element
    values = load_values(place)
    for first in range(0, len(values), RECORDS_PER_BATCH):
        examples = values[first : first + RECORDS_PER_BATCH]
        records = [build_record(record_type, decode_example(data), None) for data in examples]
        yield Batch(language, records)
