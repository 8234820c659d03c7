"""Drops records with too many characters."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.records.records import Record, texts_of


class TooLong:
    """Score: characters (Unicode code points) of the record's longest text.

    The default is that of LaBSE's monolingual data (section 3.1).
    """

    def __init__(self, threshold: int = 5000, name: str = "too_long") -> None:
        self.threshold = threshold
        self.name = name

    def score(self, records: Sequence[Record]) -> list[int]:
        return [max(map(len, texts_of(record))) for record in records]

    def accept(self, score: int) -> bool:
        return score <= self.threshold
