"""Drops untranslated pairs, whose target is a copy of the source, and pairs with other numbers."""

from __future__ import annotations

import collections

import regex

from beam_pipelines.filters import AtLeast, Below, Option, Use
from beam_pipelines.records import Pair
from labse_tf.files.record_kinds import BITEXT

_NO_LETTERS = regex.compile(r"[^\p{L}\p{M}]+")
_LEAST_TRIGRAMS = 12
# Trigrams take ten times as long as words, and are no better at telling translations from copies,
# so pairs with fewer common words are not compared by trigrams.
_LEAST_COMMON_WORDS = 0.25


class IdenticalSides(Below):
    """Score: 1.0 if the sides differ only in letter case and white space, else 0.0.

    >>> IdenticalSides().score([Pair("PARIS", "Paris", "fr"), Pair("Paris", "Париж", "ru")])
    [1.0, 0.0]
    """

    name = "identical_sides"
    threshold = 1.0
    uses = {BITEXT: Use(40)}

    def score_record(self, pair: Pair) -> float:
        return float(_essence(pair.source) == _essence(pair.target))


def _essence(text: str) -> str:
    return "".join(text.casefold().split())


class SimilarSides(Below):
    """Score: Jaccard similarity (0 to 1) of the letter trigrams of the two sides.

    Case, digits, punctuation and white space are ignored, so that a copy with another number or
    another quotation mark is still a copy. Names are the same in many languages, so pairs with a
    short side (fewer than 12 different trigrams) score 0: "Tom Hanks" on both sides is no error. So
    do pairs whose common words are less than a quarter of those of the side with fewer words.

    >>> SimilarSides().score([Pair("The file is not here", "The file is not here!", "de")])
    [1.0]
    """

    name = "similar_sides"
    threshold = 0.6
    _help = "drop pairs with sides that share X (0 to 1) of their letters' trigrams"
    uses = {BITEXT: Use(100, Option("--max-similarity", _help))}

    def score_record(self, pair: Pair) -> float:
        source, target = pair.source.casefold(), pair.target.casefold()
        words = set(source.split())
        # True of most translations, and saves building the other set.
        if words.isdisjoint(target.split()):
            return 0.0
        other_words = set(target.split())
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


# 1,000 and 1.000 and 1 000 and 1'000 are read as one number, and so are 1,00,000 and ١٬٠٠٠.
_GROUPING = regex.compile(
    r"(?<=\d)[.,\u066b\u066c'\u2019\u00a0\u202f\u2009 ](?=\d{3}(?!\d)|\d{2},\d{3}(?!\d))"
)
_RUN = regex.compile(r"\d+")
_DIGIT = regex.compile(r"\d")


class NumbersDisagree(AtLeast):
    """Score: Dice coefficient (0 to 1) of the numbers on the two sides.

    A number is a run of digits of any script. Pairs whose sides have the same digits except for
    zeros also score 1: "3000" and "3 thousand", "2:30" and "230". So do pairs with digits on only
    one side, as the other may spell the number out, and pairs without digits. The most frequent
    reason why good pairs score low is converted units: 80 °F is 27 °C, 5:30 pm is 17:30.

    >>> NumbersDisagree().score([Pair("1,000 people", "1.000 Leute", "de")])
    [1.0]
    >>> NumbersDisagree().score([Pair("80 degrees", "27 Grad", "de")])
    [0.0]
    """

    name = "numbers_disagree"
    threshold = 0.3
    _help = "drop pairs with sides that both have numbers and share less than X (0 to 1) of them"
    uses = {BITEXT: Use(60, Option("--min-number-agreement", _help))}

    def score_record(self, pair: Pair) -> float:
        if _DIGIT.search(pair.source) is None or _DIGIT.search(pair.target) is None:
            return 1.0
        one, other = _numbers(pair.source), _numbers(pair.target)
        if _significant_digits(one) == _significant_digits(other):
            return 1.0
        common = collections.Counter(one) & collections.Counter(other)
        return 2 * common.total() / (len(one) + len(other))


def _numbers(text: str) -> list[int]:
    # `int` reads the digits of all scripts and drops leading zeros.
    runs = _RUN.findall(_GROUPING.sub("", text))
    # `regex` knows digits of a later Unicode than Python does.
    return [int(run) for run in runs if run.isdecimal()]


def _significant_digits(numbers: list[int]) -> str:
    return "".join(map(str, numbers)).replace("0", "")
