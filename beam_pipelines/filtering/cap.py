"""Chooses which records of a language to keep if there are too many.

Every record has a number: either a hash of the record, so that those with the smallest numbers are
a uniform sample, or a number that decreases as its score increases. Records with numbers up to a
cutoff, the N-th smallest number, are kept. The cutoff is found exactly and without gathering all
numbers: a histogram of their upper bits gives the bin of the N-th, and only that bin is sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import apache_beam as beam
import numpy as np

from beam_pipelines.records.records import Batch
from beam_pipelines.runtime.shuffle import random_number_of

# One worker sorts a bin. Of 10^9 random numbers, 15,000 share one (120 kB). Scores are denser: a
# bin holds all that differ by less than 1 part in 128.
_BIN_BITS = 16
_SHIFT = 64 - _BIN_BITS

Numbers = tuple[str, np.ndarray]  # language, [n] uint64 numbers of its records


class Bin(NamedTuple):
    """Position of the last record that is kept.

    Attributes:
      number: of the bin, from 0.
      rank: how many records of the bin are kept, 1 or more.
    """

    number: int
    rank: int


def random_numbers(examples: Iterable[bytes], seed: int) -> np.ndarray:
    """Returns the random numbers of serialized records: [n] uint64."""
    return np.array([random_number_of(example, seed) for example in examples], np.uint64)


def best_first(scores: Sequence[float], numbers: np.ndarray) -> np.ndarray:
    """Returns numbers that ascend as the scores descend: [n] uint64.

    Args:
      scores: compared as float32; NaN comes last.
      numbers: random numbers, which order records with equal scores.
    """
    values = np.asarray(scores, np.float32)
    bits = np.where(np.isnan(values), np.float32(-np.inf), values).view(np.uint32)
    # As unsigned integers, the bits of positive floats ascend and those of negative ones descend.
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return (~ascending).astype(np.uint64) << np.uint64(32) | numbers >> np.uint64(32)


class FindCrowded(beam.PTransform):
    """PCollection of `Batch` -> (language, records) of the languages with more than `maximum`."""

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self._maximum = maximum

    def expand(self, batches):
        return (
            batches
            | "Count" >> beam.Map(_count)
            | "Sum" >> beam.CombinePerKey(sum)
            | "Compare" >> beam.Filter(_is_more, self._maximum)
        )


def _count(batch: Batch) -> tuple[str, int]:
    return batch.language, len(batch.records)


def _is_more(counted: tuple[str, int], maximum: int) -> bool:
    return counted[1] > maximum


class FindCuts(beam.PTransform):
    """PCollection of `Numbers` -> (language, largest number that is kept).

    The numbers of a language are distinct, except for hash collisions. Languages with at most
    `maximum` numbers have no cutoff.
    """

    def __init__(self, maximum: int) -> None:
        super().__init__()
        self._maximum = maximum

    def expand(self, numbers):
        bins = (
            numbers
            | "Count" >> beam.MapTuple(_histogram)
            | "Add up" >> beam.CombinePerKey(_AddHistograms())
            | "Find bins" >> beam.FlatMap(_find_bin, self._maximum)
        )
        return (
            numbers
            | "Select" >> beam.FlatMap(_select, beam.pvalue.AsDict(bins))
            | "Gather" >> beam.GroupByKey()
            | "Cut" >> beam.MapTuple(_cut)
        )


def _histogram(language: str, numbers: np.ndarray) -> tuple[str, tuple[np.ndarray, np.ndarray]]:
    """Returns the bins that are not empty, and their counts."""
    return language, np.unique(numbers >> np.uint64(_SHIFT), return_counts=True)


class _AddHistograms(beam.CombineFn):
    def create_accumulator(self) -> np.ndarray:
        return np.zeros(1 << _BIN_BITS, np.int64)

    def add_input(self, total: np.ndarray, counted: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        bins, counts = counted
        total[bins] += counts
        return total

    def merge_accumulators(self, totals: Iterable[np.ndarray]) -> np.ndarray:
        return sum(totals, start=self.create_accumulator())

    def extract_output(self, total: np.ndarray) -> np.ndarray:
        return total


def _find_bin(counted: tuple[str, np.ndarray], maximum: int) -> Iterator[tuple[str, Bin]]:
    language, histogram = counted
    up_to = np.cumsum(histogram)
    if up_to[-1] > maximum:
        number = int(np.searchsorted(up_to, maximum))
        yield language, Bin(number, int(maximum - up_to[number] + histogram[number]))


def _select(
    element: Numbers, bins: Mapping[str, Bin]
) -> Iterator[tuple[str, tuple[int, np.ndarray]]]:
    language, numbers = element
    if language in bins:
        chosen = bins[language]
        yield language, (chosen.rank, numbers[numbers >> np.uint64(_SHIFT) == chosen.number])


def _cut(language: str, parts: Iterable[tuple[int, np.ndarray]]) -> tuple[str, int]:
    ranks, numbers = zip(*parts, strict=True)
    return language, int(np.sort(np.concatenate(numbers))[ranks[0] - 1])
