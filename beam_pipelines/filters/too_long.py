"""Drops records with too many characters."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import LENGTHS, Option, Use
from beam_pipelines.records.records import Record, texts_of
from labse_tf.files.record_kinds import BITEXT, MONOLINGUAL


class TooLong:
    """Score: characters (Unicode code points) of the record's longest text.

    The default is that of LaBSE's monolingual data (section 3.1).

    >>> TooLong(12).score([Sentence("Good morning.", "en"), Sentence("你好。", "zh")])
    [13, 3]
    >>> TooLong(12).accept(13)
    False
    """

    name = "too_long"
    uses = {
        BITEXT: Use(
            order=20,
            threshold=Option(
                "--max-characters",
                "drop pairs with a side of more characters",
                "N",
                type=int,
            ),
        ),
        MONOLINGUAL: Use(
            order=20,
            stage=LENGTHS,
            threshold=Option(
                "--max-characters",
                "drop lines with more characters, before they are split",
                "N",
                type=int,
            ),
        ),
    }

    def __init__(self, threshold: int = 5000, name: str = name) -> None:
        self.threshold = threshold
        self.name = name

    def score(self, records: Sequence[Record]) -> list[int]:
        return [max(map(len, texts_of(record))) for record in records]

    def accept(self, score: int) -> bool:
        return score <= self.threshold
