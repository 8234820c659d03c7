"""Drops pairs whose sides differ too much in length to be translations of each other."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import Option, Use
from beam_pipelines.records.records import Pair
from labse_tf.files.record_kinds import BITEXT


class LengthRatio:
    """Score: characters of the longer side over characters of the shorter one, 1.0 or more.

    Characters, because counting words needs spaces, which Chinese, Japanese, Thai and others lack.
    The default is generous because Chinese needs few characters: of 830,000 pairs of Tatoeba and
    NTREX-128 in 130 languages, 11 had a ratio above 9, and 7 of these 11 were wrong pairs.

    >>> LengthRatio().score([Pair("It is a privilege to meet you.", "幸会幸会。", "zh")])
    [6.0]
    >>> LengthRatio(threshold=4).accept(6.0)
    False
    """

    name = "length_ratio"
    uses = {
        BITEXT: Use(
            order=30,
            threshold=Option(
                "--max-length-ratio",
                "drop pairs with one side of more than X times the other's characters",
            ),
        )
    }

    def __init__(self, threshold: float = 9.0) -> None:
        self.threshold = threshold

    def score(self, records: Sequence[Pair]) -> list[float]:
        return [_ratio(len(pair.source), len(pair.target)) for pair in records]

    def accept(self, score: float) -> bool:
        return score <= self.threshold


def _ratio(one: int, other: int) -> float:
    shorter, longer = sorted((one, other))
    return longer / max(shorter, 1)
