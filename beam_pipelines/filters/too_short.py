"""Drops records with too few characters."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.records.records import Record, texts_of


class TooShort:
    """Score: characters (Unicode code points) of the record's shortest text.

    The default is that of LaBSE's monolingual data (section 3.1). Pairs take a lower limit: "Go."
    and its Chinese translation of two characters are a fine pair.
    """

    def __init__(self, threshold: int = 10, name: str = "too_short") -> None:
        self.threshold = threshold
        self.name = name

    def score(self, records: Sequence[Record]) -> list[int]:
        return [min(map(len, texts_of(record))) for record in records]

    def accept(self, score: int) -> bool:
        return score >= self.threshold
