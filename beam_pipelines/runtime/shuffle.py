"""Shuffles of large values, which are packed before the engine sees them: many in a parcel.

And hashes that are the same in every process, by which records are spread, ordered and drawn.

Beam's direct runner holds in its main process everything before a GroupByKey, so its memory would
grow with the corpus. There, parcels are in files, and it moves and holds only positions in these.
The files are in a folder that the caller removes. The engine of a cluster carries the parcels
themselves: it spills to its own disks, and there is no disk that all machines share.
"""

from __future__ import annotations

import collections
import hashlib
import uuid
from collections.abc import Hashable, Iterable, Iterator
from itertools import chain
from typing import Any

import apache_beam as beam
import zstandard
from apache_beam.coders import BytesCoder, ListCoder
from apache_beam.transforms.window import GlobalWindows

from beam_pipelines.records import RECORDS_PER_BATCH, Batch, Record, encode_record, parse_record
from beam_pipelines.runtime.storage import create_file, join, open_file

# How much a worker holds before it packs it.
_MAX_HELD_BYTES = 32_000_000
# Memory overhead of a value.
_BYTES_PER_VALUE = 50
_VALUES = ListCoder(BytesCoder())

# Packed values, or where they are: path, first byte, number of bytes.
Parcel = bytes | tuple[str, int, int]
Keyed = tuple[Hashable, Any]


@beam.ptransform_fn
def GroupValues(keyed, folder: str | None):
    """PCollection of `(key, values)` -> `(key, parcels)`, one for each key; see `unpack_all`.

    Values are lists of bytes. A key is returned even if all of its lists are empty. Files go to
    `folder`; if it is None, the engine carries the values.
    """
    return keyed | "Pack" >> PackValues(folder) | "Group" >> beam.GroupByKey()


@beam.ptransform_fn
def PackValues(keyed, folder: str | None):
    """PCollection of `(key, values)` -> `(key, Parcel)`; a key may occur several times."""
    return keyed | beam.ParDo(_Pack(folder))


@beam.ptransform_fn
def HoldBatches(batches, folder: str | None, record_type: type[Record]):
    """PCollection of `Batch` -> the same records in other batches.

    For data that is used only after all of it has been seen, as with a side input.
    """
    return (
        batches
        | "Encode" >> beam.Map(lambda one: (one.language, list(map(encode_record, one.records))))
        | "Pack" >> PackValues(folder)
        # Makes what follows a separate step, before which only parcels are held.
        | "Wait" >> beam.Reshuffle()
        | "Unpack" >> beam.FlatMap(_unpack_batches, record_type)
    )


def _unpack_batches(element: tuple[str, Parcel], record_type: type[Record]) -> Iterator[Batch]:
    language, parcel = element
    values = unpack_values(parcel)
    for first in range(0, len(values), RECORDS_PER_BATCH):
        examples = values[first : first + RECORDS_PER_BATCH]
        yield Batch(language, [parse_record(record_type, data) for data in examples])


def unpack_values(parcel: Parcel) -> list[bytes]:
    """Returns the values that `PackValues` packed."""
    if isinstance(parcel, bytes):
        return _VALUES.decode(zstandard.decompress(parcel))
    path, start, length = parcel
    with open_file(path) as stream:
        stream.seek(start)
        return _VALUES.decode(zstandard.decompress(stream.read(length)))


def unpack_all(parcels: Iterable[Parcel]) -> Iterator[bytes]:
    """Yields the values in parcels, of which one is held at a time."""
    return chain.from_iterable(map(unpack_values, parcels))


class _Pack(beam.DoFn):
    def __init__(self, folder: str | None) -> None:
        self._folder = folder

    def start_bundle(self) -> None:
        self._held: dict[Hashable, list[bytes]] = collections.defaultdict(list)
        self._size = 0

    def process(self, element: tuple[Hashable, list[bytes]]) -> Iterator[tuple[Hashable, Parcel]]:
        key, values = element
        self._held[key] += values
        self._size += sum(map(len, values)) + _BYTES_PER_VALUE * len(values)
        if self._size >= _MAX_HELD_BYTES:
            yield from self._take()

    def finish_bundle(self) -> Iterator:
        yield from map(GlobalWindows.windowed_value, self._take())

    def _take(self) -> list[tuple[Hashable, Parcel]]:
        held = self._held
        self.start_bundle()
        parcels = [
            (key, zstandard.compress(_VALUES.encode(values), level=1))
            for key, values in held.items()
        ]
        if self._folder is None or not parcels:
            return parcels
        # If failed work is repeated, it writes another file, and the first one is never read.
        path = join(self._folder, uuid.uuid4().hex)
        places, start = [], 0
        with create_file(path) as stream:
            for key, data in parcels:
                stream.write(data)
                places.append((key, (path, start, len(data))))
                start += len(data)
        return places


def hash_of(data: bytes) -> bytes:
    """Returns a hash of 16 bytes, which determines a record's position in the output."""
    return hashlib.blake2b(data, digest_size=16).digest()


def random_number_of(data: bytes, seed: int) -> int:
    """Returns a pseudorandom number below 2^64 that depends on the seed.

    Records with the smallest numbers are a uniform sample, whichever worker draws them.
    """
    salt = (seed % 2**64).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, salt=salt).digest(), "big")


def smallest(items: Iterable[Keyed], size: int) -> list[Keyed]:
    """Returns the `size` pairs `(key, item)` with the smallest keys in order, each key once."""
    distinct = dict(items)
    return [(key, distinct[key]) for key in sorted(distinct)[:size]]


class KeepSmallest(beam.CombineFn):
    """Combines lists of `(key, item)` into the result of `smallest` for all of them together.

    The result depends neither on the order nor on how the items are spread over the lists.
    """

    def __init__(self, size: int) -> None:
        self._size = size

    def create_accumulator(self) -> list[Keyed]:
        return []

    def add_input(self, kept: list[Keyed], items: list[Keyed]) -> list[Keyed]:
        return smallest([*kept, *items], self._size)

    def merge_accumulators(self, accumulators: Iterable[list[Keyed]]) -> list[Keyed]:
        return smallest(chain.from_iterable(accumulators), self._size)

    def extract_output(self, kept: list[Keyed]) -> list[Keyed]:
        return kept
