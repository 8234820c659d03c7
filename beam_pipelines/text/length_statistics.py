"""Statistics of the lengths of translations into a language; `learn_lengths` computes them."""

from __future__ import annotations

import math
from typing import NamedTuple

import regex

# Final punctuation of any script, which closing quotation marks and brackets may follow.
_FINISHED = regex.compile(
    r"[\p{Sentence_Terminal}\p{Terminal_Punctuation}…][\p{Pe}\p{Pf}\p{Pi}\"'\s]*$"
)
_TAIL = 5

# The variance of the log ratio around a language's median, for length n: _FIXED + _BY_LENGTH / n.
# Fitted on 650,000 pairs in 94 languages. The second term is that of sentences of independent words
# (Gale and Church 1993); the first is due to the translators.
_FIXED = 0.013
_BY_LENGTH = 1.0


class LengthStatistics(NamedTuple):
    """Length statistics of the pairs of a language.

    Attributes:
      median: of the natural logarithm of (characters of the target / characters of English).
      spread: the deviation of the ratios from it, as a multiple of `expected_deviation`.
      unfinished_share: share (0 to 1) of pairs whose target does not end in a punctuation mark,
        among those whose English does.
    """

    median: float
    spread: float
    unfinished_share: float


def expected_deviation(length: float) -> float:
    """Returns the standard deviation of the log ratio of text of this many characters."""
    return math.sqrt(expected_variance(1 / length))


def expected_variance(inverse_length: float) -> float:
    """Returns the variance of the log ratio; for several lengths, from the mean of the inverses."""
    return _FIXED + _BY_LENGTH * inverse_length


def is_finished(text: str) -> bool:
    """Whether the text ends in punctuation, ignoring closing quotation marks and brackets."""
    return _FINISHED.search(text[-_TAIL:]) is not None
