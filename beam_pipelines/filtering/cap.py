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

from beam_pipelines.runtime.shuffle import random_number_of

# One worker sorts a bin. Of 10^9 random numbers, 15,000 share one (120 kB). Scores are denser: a
# bin holds all that differ by less than 1 part in 128.
_BIN_BITS = 16
_SHIFT = 64 - _BIN_BITS

Numbers = tuple[str, np.ndarray]  # language, [n] uint64 numbers of its records
_Histogram = tuple[np.ndarray, np.ndarray]  # bins that are not empty, ascending; their counts


class Bin(NamedTuple):
    """Position of the last record that is kept."""

    number: int  # The bin's, from 0.
    rank: int  # How many records of the bin are kept, 1 or more.


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
    # As unsigned integers, the bits of positive floats ascend, the bits of negative floats descend.
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return (~ascending).astype(np.uint64) << np.uint64(32) | numbers >> np.uint64(32)


@beam.ptransform_fn
def FindCrowded(batches, maximum: int):
    """PCollection of `Batch` -> (language, records) of the languages with more than `maximum`."""
    return (
        batches
        | "Count" >> beam.Map(lambda batch: (batch.language, len(batch.records)))
        | "Sum" >> beam.CombinePerKey(sum)
        | "Compare" >> beam.Filter(lambda counted: counted[1] > maximum)
    )


@beam.ptransform_fn
def FindCuts(numbers, maximum: int):
    """PCollection of `Numbers` -> (language, largest number that is kept).

    The numbers of a language are distinct, except for hash collisions. Languages with at most
    `maximum` numbers have no cutoff.
    """
    bins = (
        numbers
        | "Count" >> beam.MapTuple(_histogram)
        | "Add up" >> beam.CombinePerKey(_add_up)
        | "Find bins" >> beam.FlatMap(_find_bin, maximum)
    )
    return (
        numbers
        | "Select" >> beam.FlatMap(_select, beam.pvalue.AsDict(bins))
        | "Gather" >> beam.GroupByKey()
        | "Cut" >> beam.MapTuple(_cut)
    )


def _histogram(language: str, numbers: np.ndarray) -> tuple[str, _Histogram]:
    return language, np.unique(numbers >> np.uint64(_SHIFT), return_counts=True)


def _add_up(histograms: Iterable[_Histogram]) -> _Histogram:
    total = np.zeros(1 << _BIN_BITS, np.int64)
    for bins, counts in histograms:
        total[bins] += counts
    bins = np.flatnonzero(total)
    return bins, total[bins]


def _find_bin(counted: tuple[str, _Histogram], maximum: int) -> Iterator[tuple[str, Bin]]:
    language, (bins, counts) = counted
    up_to = np.cumsum(counts)
    if up_to[-1] > maximum:
        place = np.searchsorted(up_to, maximum)
        yield language, Bin(int(bins[place]), int(maximum - up_to[place] + counts[place]))


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
