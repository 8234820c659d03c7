"""Drops pages on which few sentences are left (C4, section 2.2: under 3)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.records.records import Document
from beam_pipelines.text.sentences import split_sentences


class FewSentences:
    """Score: sentences of the page."""

    name = "few_sentences"

    def __init__(self, threshold: int = 3) -> None:
        self.threshold = threshold

    def score(self, records: Sequence[Document]) -> list[int]:
        return [_count(document) for document in records]

    def accept(self, score: int) -> bool:
        return score >= self.threshold


def _count(document: Document) -> int:
    lines = document.text.split("\n")
    return sum(len(split_sentences(line, document.language)) for line in lines)
