"""Drops pairs that are copied rather than translated, with small changes."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from beam_pipelines.filters import Option, Use
from beam_pipelines.records.records import Pair
from labse_tf.files.record_kinds import BITEXT

_NO_LETTERS = regex.compile(r"[^\p{L}\p{M}]+")
_LEAST_TRIGRAMS = 12
# Trigrams take ten times as long as words, and tell translations from copies no better.
_LEAST_COMMON_WORDS = 0.25


class SimilarSides:
    """Score: the trigrams of letters that both sides have, over those of either side (0 to 1).

    Case, digits, punctuation and white space do not count, so that a copy with another number or
    another quotation mark is a copy. Names are the same in many languages, so short sides (fewer
    than 12 different trigrams) score 0: "Tom Hanks" is nobody's mistake. So do sides that share
    less than a quarter of the words of the side with fewer.

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
    # So it is with most translations, and the other set is saved.
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
