"""Learns how long translations into each language are: a pass over the pairs before filtering."""

from __future__ import annotations

import math

import apache_beam as beam
import numpy as np

from beam_pipelines.records.records import Batch
from beam_pipelines.text.length_statistics import (
    LengthStatistics,
    expected_variance,
    is_finished,
)

# With fewer pairs, a few outliers could determine the median.
_LEAST_PAIRS = 100

# A histogram instead of the ratios themselves, as its size does not depend on the corpus. Bins of
# 2 % from 1/55 to 55.
_WIDTH = 0.02
_LIMIT = 4.0
_BINS = round(2 * _LIMIT / _WIDTH)

# Some languages vary more, Chinese by half. More than that is noise in the corpus.
_LEAST_SPREAD, _MOST_SPREAD = 1.0, 1.6

# Sums of floats depend on the order, and the order on the runner. So 1 / length is summed as a
# multiple of 2^-32, with an error of at most half of that. 64 bits are enough for 2 billion pairs
# of one character each.
_INVERSE_UNIT = 1 << 32

# Standard deviation of the normal distribution, in units of its median absolute deviation.
_PER_MAD = 1.4826


class LearnLengths(beam.PTransform):
    """PCollection of `Batch` -> (language, `LengthStatistics`); none for fewer than 100 pairs."""

    def expand(self, batches):
        return (
            batches
            | "Count" >> beam.Map(lambda batch: (batch.language, _count(batch)))
            | "Sum" >> beam.CombinePerKey(_sum)
            | "Describe" >> beam.FlatMap(_describe)
        )


def describe_lengths(batch: Batch) -> LengthStatistics | None:
    """Returns the statistics of a single batch; None for fewer than 100 pairs."""
    return next((found for _, found in _describe((batch.language, _count(batch)))), None)


def _count(batch: Batch) -> np.ndarray:
    """Returns the histogram of log ratios, then three sums; all of them int64.

    The sums are the number of pairs whose source is finished, the number of these whose target is
    finished too, and, over all pairs, the inverse of the longer side's length, in units of
    1 / _INVERSE_UNIT.
    """
    lengths = np.array([[len(pair.source), len(pair.target)] for pair in batch.records], np.int64)
    lengths = lengths.clip(1)
    ratios = np.log(lengths[:, 1] / lengths[:, 0])
    bins = ((ratios + _LIMIT) / _WIDTH).astype(int).clip(0, _BINS - 1)
    finished = [pair for pair in batch.records if is_finished(pair.source)]
    both = sum(is_finished(pair.target) for pair in finished)
    longer = lengths.max(axis=1)
    inverses = (2 * _INVERSE_UNIT + longer) // (2 * longer)
    sums = [len(finished), both, inverses.sum()]
    return np.append(np.bincount(bins, minlength=_BINS), sums).astype(np.int64)


def _sum(counts) -> np.ndarray:
    return sum(counts, np.zeros(_BINS + 3, np.int64))


def _describe(counted: tuple[str, np.ndarray]):
    language, counts = counted
    histogram, (finished, both, inverses) = counts[:_BINS], counts[_BINS:]
    pairs = histogram.sum()
    if pairs < _LEAST_PAIRS:
        return
    middles = (np.arange(_BINS) + 0.5) * _WIDTH - _LIMIT
    median = _weighted_median(middles, histogram)
    deviation = _PER_MAD * _weighted_median(np.abs(middles - median), histogram)
    expected = math.sqrt(expected_variance(inverses / _INVERSE_UNIT / pairs))
    spread = np.clip(deviation / expected, _LEAST_SPREAD, _MOST_SPREAD)
    yield language, LengthStatistics(median, float(spread), float(1 - both / max(finished, 1)))


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, below[-1] / 2)])
