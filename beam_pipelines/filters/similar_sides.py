"""Drops pairs whose target is a slightly changed copy of the source, not a translation."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from beam_pipelines.filters import Option, Use
from beam_pipelines.records.records import Pair
from labse_tf.files.record_kinds import BITEXT

_NO_LETTERS = regex.compile(r"[^\p{L}\p{M}]+")
_LEAST_TRIGRAMS = 12
# Trigrams take ten times as long as words, and are no better at telling translations from copies,
# so pairs with fewer common words are not compared by trigrams.
_LEAST_COMMON_WORDS = 0.25


class SimilarSides:
    """Score: Jaccard similarity (0 to 1) of the letter trigrams of the two sides.

    Case, digits, punctuation and white space are ignored, so that a copy with another number or
    another quotation mark is still a copy. Names are the same in many languages, so pairs with a
    short side (fewer than 12 different trigrams) score 0: "Tom Hanks" on both sides is no error. So
    do pairs whose common words are less than a quarter of those of the side with fewer words.

    >>> SimilarSides().score([Pair("The file is not here", "The file is not here!", "de")])
    [1.0]
    """

    name = "similar_sides"
    uses = {
        BITEXT: Use(
            order=100,
            threshold=Option(
                "--max-similarity",
                "drop pairs with sides that share X (0 to 1) of their letters' trigrams",
            ),
        )
    }

    def __init__(self, threshold: float = 0.6) -> None:
        self.threshold = threshold

    def score(self, records: Sequence[Pair]) -> list[float]:
        return [_similarity(pair.source, pair.target) for pair in records]

    def accept(self, score: float) -> bool:
        return score < self.threshold


def _similarity(source: str, target: str) -> float:
    source, target = source.casefold(), target.casefold()
    words = set(source.split())
    # True of most translations, and saves building the other set.
    if words.isdisjoint(target_words := target.split()):
        return 0.0
    other_words = set(target_words)
    if len(words & other_words) < _LEAST_COMMON_WORDS * min(len(words), len(other_words)):
        return 0.0
    one, other = _trigrams(source), _trigrams(target)
    if min(len(one), len(other)) < _LEAST_TRIGRAMS:
        return 0.0
    common = len(one & other)
    return common / (len(one) + len(other) - common)


def _trigrams(text: str) -> set[str]:
    letters = _NO_LETTERS.sub("", text)
    return {letters[start : start + 3] for start in range(len(letters) - 2)}
