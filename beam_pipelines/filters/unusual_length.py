"""Drops pairs with a side that is too long or too short for a translation into that language."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from beam_pipelines.filters import Option, Use
from beam_pipelines.records.records import Pair
from beam_pipelines.text.length_statistics import (
    LengthStatistics,
    expected_deviation,
    is_finished,
)
from labse_tf.files.record_kinds import BITEXT

if TYPE_CHECKING:
    from beam_pipelines.text.learn_lengths import LearnLengths

# Added to the score if the side that is too short lacks the final punctuation mark.
_UNFINISHED = 1.5

# If more than this share of a language's complete sentences lack a final mark (Thai has no full
# stop), a missing mark is not evidence.
_MOST_UNFINISHED = 0.1


class UnusualLength:
    """Score: how far the ratio of the sides' lengths is from the language's median, 0 or more.

    Measured in standard deviations of the logarithm of the ratio, which are smaller for longer text
    and larger for languages that vary more (see `length_statistics`). 1.5 is added if the side that
    is too short lacks the final punctuation mark that the other has: it may have been cut off.
    Pairs of a language with too few pairs for a median score 0, as do all pairs before
    `with_learned`; `LengthRatio` covers these.

    >>> learned = {"de": LengthStatistics(median=0.0, spread=1.0, unfinished_share=0.0)}
    >>> knowing = UnusualLength().with_learned(learned)
    >>> [score] = knowing.score([Pair("a" * 100, "b" * 200, "de")])  # ln 2 / sqrt(0.013 + 1 / 200)
    >>> round(score, 2)
    5.17
    """

    name = "unusual_length"
    uses = {
        BITEXT: Use(
            order=90,
            threshold=Option(
                "--max-length-deviation",
                "drop pairs with lengths more than X standard deviations from the usual "
                "ratio in their language",
            ),
        )
    }

    def __init__(
        self, threshold: float = 2.75, learned: Mapping[str, LengthStatistics] | None = None
    ) -> None:
        self.threshold = threshold
        self._learned = learned or {}

    def learn(self) -> LearnLengths:
        """Returns a transform, `Batch` -> (language, `LengthStatistics`)."""
        from beam_pipelines.text.learn_lengths import LearnLengths

        return LearnLengths()

    def with_learned(self, learned: Mapping[str, LengthStatistics]) -> UnusualLength:
        """Returns this filter with the statistics that `learn` found."""
        return UnusualLength(self.threshold, learned)

    def score(self, records: Sequence[Pair]) -> list[float]:
        return [_deviation(pair, self._learned.get(pair.language)) for pair in records]

    def accept(self, score: float) -> bool:
        return score <= self.threshold


def _deviation(pair: Pair, statistics: LengthStatistics | None) -> float:
    if statistics is None or not pair.source or not pair.target:
        return 0.0
    # The target's length, converted to characters of English.
    target = len(pair.target) / math.exp(statistics.median)
    source = len(pair.source)
    deviation = statistics.spread * expected_deviation(max(source, target))
    score = abs(math.log(target / source)) / deviation
    short, long = (pair.source, pair.target) if source < target else (pair.target, pair.source)
    if (
        statistics.unfinished_share < _MOST_UNFINISHED
        and is_finished(long)
        and not is_finished(short)
    ):
        score += _UNFINISHED
    return score
