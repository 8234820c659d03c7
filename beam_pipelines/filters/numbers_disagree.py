"""Drops pairs whose sides contain different numbers."""

from __future__ import annotations

import collections

import regex

from beam_pipelines.filters import AtLeast, Option, Use
from beam_pipelines.records import Pair
from labse_tf.files.record_kinds import BITEXT

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
