"""Drops pairs with a side that is too long or too short for a translation into that language."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import regex

from beam_pipelines.filters import AtMost, Option, Use
from beam_pipelines.records import Batch, Pair
from labse_tf.files.record_kinds import BITEXT

if TYPE_CHECKING:
    import apache_beam as beam
    import numpy as np

# Final punctuation of any script, which closing quotation marks and brackets may follow.
_FINISHED = regex.compile(
    r"[\p{Sentence_Terminal}\p{Terminal_Punctuation}…][\p{Pe}\p{Pf}\p{Pi}\"'\s]*$"
)
_TAIL = 5

# Added to the score if the side that is too short lacks the final punctuation mark.
_UNFINISHED = 1.5
# If more than this share of a language's complete sentences lack a final mark (Thai has no full
# stop), a missing mark is not evidence.
_MOST_UNFINISHED = 0.1

# The variance of the log ratio around a language's median, for length n: _FIXED + _BY_LENGTH / n.
# Fitted on 650,000 pairs in 94 languages. Sentences of independent words would have the second term
# alone (Gale and Church 1993); the first is due to the translators.
_FIXED = 0.013
_BY_LENGTH = 1.0

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
# multiple of 2^-32; 64 bits are enough for 2 billion pairs of one character each.
_INVERSE_UNIT = 1 << 32
# Standard deviation of the normal distribution, in units of its median absolute deviation.
_PER_MAD = 1.4826


class LengthStatistics(NamedTuple):
    """Length statistics of the pairs of a language.

    `median` is the natural logarithm of (characters of the target / of English), `spread` the
    deviation of the ratios from it, as a multiple of the expected one, `unfinished_share` (0 to 1)
    of pairs whose target does not end in a punctuation mark, among pairs whose English does.
    """

    median: float
    spread: float
    unfinished_share: float


class UnusualLength(AtMost):
    """Score: how far the ratio of the sides' lengths is from the language's median, 0 or more.

    Measured in standard deviations of the logarithm of the ratio, which are smaller for longer text
    and larger for languages that vary more. 1.5 is added if the side that is too short lacks the
    final punctuation mark that the other has: it may have been cut off. Pairs of a language with
    too few pairs for a median score 0, as do all pairs before `with_learned`; `LengthRatio` covers
    these.

    >>> learned = {"de": LengthStatistics(median=0.0, spread=1.0, unfinished_share=0.0)}
    >>> knowing = UnusualLength().with_learned(learned)
    >>> [score] = knowing.score([Pair("a" * 100, "b" * 200, "de")])  # ln 2 / sqrt(0.013 + 1 / 200)
    >>> round(score, 2)
    5.17
    """

    name = "unusual_length"
    threshold = 2.75
    _help = (
        "drop pairs with lengths more than X standard deviations from the usual ratio in their "
        "language"
    )
    uses = {BITEXT: Use(90, Option("--max-length-deviation", _help))}
    _learned: Mapping[str, LengthStatistics] = {}

    def learn(self) -> beam.PTransform:
        import apache_beam as beam

        return (
            "Count" >> beam.Map(lambda batch: (batch.language, count_lengths(batch)))
            | "Sum" >> beam.CombinePerKey(sum)
            | "Describe" >> beam.FlatMap(describe_lengths)
        )

    def with_learned(self, learned: Mapping[str, LengthStatistics]) -> UnusualLength:
        knowing = UnusualLength(self.threshold)
        knowing._learned = learned
        return knowing

    def score_record(self, pair: Pair) -> float:
        statistics = self._learned.get(pair.language)
        if statistics is None or not pair.source or not pair.target:
            return 0.0
        # The target's length, converted to characters of English.
        target = len(pair.target) / math.exp(statistics.median)
        source = len(pair.source)
        deviation = statistics.spread * math.sqrt(_expected_variance(1 / max(source, target)))
        score = abs(math.log(target / source)) / deviation
        short, long = (pair.source, pair.target) if source < target else (pair.target, pair.source)
        ends_count = statistics.unfinished_share < _MOST_UNFINISHED
        if ends_count and is_finished(long) and not is_finished(short):
            score += _UNFINISHED
        return score


def is_finished(text: str) -> bool:
    """Whether the text ends in punctuation, ignoring closing quotation marks and brackets."""
    return _FINISHED.search(text[-_TAIL:]) is not None


def _expected_variance(inverse_length: float) -> float:
    """Returns the variance of the log ratio; for several lengths, from the mean of the inverses."""
    return _FIXED + _BY_LENGTH * inverse_length


def count_lengths(batch: Batch) -> np.ndarray:
    """Returns the histogram of log ratios, then three sums; all of them int64.

    The sums are the number of pairs whose source is finished, the number of these whose target is
    finished too, and, over all pairs, the inverse of the longer side's length, in units of
    1 / _INVERSE_UNIT. Results of several batches are added up, in any order.
    """
    import numpy as np

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


def describe_lengths(counted: tuple[str, np.ndarray]) -> Iterator[tuple[str, LengthStatistics]]:
    """Yields (language, its statistics), or nothing for fewer than 100 pairs."""
    import numpy as np

    language, counts = counted
    histogram, (finished, both, inverses) = counts[:_BINS], counts[_BINS:]
    pairs = histogram.sum()
    if pairs < _LEAST_PAIRS:
        return
    middles = (np.arange(_BINS) + 0.5) * _WIDTH - _LIMIT
    median = _weighted_median(middles, histogram)
    deviation = _PER_MAD * _weighted_median(np.abs(middles - median), histogram)
    expected = math.sqrt(_expected_variance(inverses / _INVERSE_UNIT / pairs))
    spread = np.clip(deviation / expected, _LEAST_SPREAD, _MOST_SPREAD)
    yield language, LengthStatistics(median, float(spread), float(1 - both / max(finished, 1)))


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = values.argsort(kind="stable")
    below = weights[order].cumsum()
    return float(values[order][below.searchsorted(below[-1] / 2)])
