"""The k items with the smallest keys: a sample in constant memory, if the keys are hashes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import apache_beam as beam

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
