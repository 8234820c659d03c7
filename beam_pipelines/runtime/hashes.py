"""Hashes that are the same in every process, and samples drawn by the smallest keys."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from typing import Any

import apache_beam as beam

HASH_BYTES = 16


def hash_of(data: bytes) -> bytes:
    """Returns a hash of HASH_BYTES bytes, which determines a record's position in the output."""
    return hashlib.blake2b(data, digest_size=HASH_BYTES).digest()


def random_number_of(data: bytes, seed: int) -> int:
    """Returns a pseudorandom number below 2^64 that depends on the seed.

    Records with the smallest numbers are a uniform sample, whichever worker draws them.
    """
    salt = (seed % 2**64).to_bytes(8, "little")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, salt=salt).digest(), "big")


Keyed = tuple[Hashable, Any]


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
        return smallest((item for kept in accumulators for item in kept), self._size)

    def extract_output(self, kept: list[Keyed]) -> list[Keyed]:
        return kept
