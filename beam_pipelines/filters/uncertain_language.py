"""Drops sentences that are not in the language that their file or field says."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.language_id import IDENTIFIABLE, identify, is_compatible
from beam_pipelines.records import Sentence


class UncertainLanguage:
    """Score: the probability of the language that is found, 0 to 1, if it fits; else 0.0.

    A language that the model knows too little of scores 1.0, whatever is found.
    """

    name = "uncertain_language"

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def score(self, records: Sequence[Sentence]) -> list[float]:
        found = identify([record.text for record in records])
        return [
            _score(record.language, *answer) for record, answer in zip(records, found, strict=True)
        ]

    def accept(self, score: float) -> bool:
        return score >= self.threshold


def _score(declared: str, found: str | None, probability: float) -> float:
    if declared not in IDENTIFIABLE:
        return 1.0
    return probability if is_compatible(declared, found) else 0.0
