"""Drops records with too few characters."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import LENGTHS, Option, Use
from beam_pipelines.records.records import Record, texts_of
from labse_tf.files.record_kinds import BITEXT, MONOLINGUAL


class TooShort:
    """Score: characters (Unicode code points) of the record's shortest text.

    The default is that of LaBSE's monolingual data (section 3.1). Pairs have a lower limit: "Go."
    and its Chinese translation of two characters are a valid pair.

    >>> pairs = [Pair("Go.", "去。", "zh"), Pair("Run!", "跑", "zh")]
    >>> [TooShort(2).accept(score) for score in TooShort(2).score(pairs)]
    [True, False]
    """

    name = "too_short"
    uses = {
        BITEXT: Use(
            order=10,
            threshold=Option(
                "--min-characters",
                "drop pairs with a side of fewer characters",
                "N",
                type=int,
                default=2,
            ),
        ),
        MONOLINGUAL: Use(
            order=10,
            stage=LENGTHS,
            threshold=Option(
                "--min-characters",
                "drop lines with fewer characters, before they are split",
                "N",
                type=int,
            ),
        ),
    }

    def __init__(self, threshold: int = 10, name: str = name) -> None:
        self.threshold = threshold
        self.name = name

    def score(self, records: Sequence[Record]) -> list[int]:
        return [min(map(len, texts_of(record))) for record in records]

    def accept(self, score: int) -> bool:
        return score >= self.threshold
