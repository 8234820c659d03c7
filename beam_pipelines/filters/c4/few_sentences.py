"""Drops pages with few sentences left (C4, section 2.2: fewer than 3)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import RESTS, Option, Use
from beam_pipelines.records.records import Document
from beam_pipelines.text.sentences import split_sentences
from labse_tf.files.record_kinds import MONOLINGUAL


class FewSentences:
    """Score: number of sentences in the page.

    >>> FewSentences().score([Document("One. Two.\\nThree.", "en")])
    [3]
    """

    name = "few_sentences"
    uses = {
        MONOLINGUAL: Use(
            order=10,
            stage=RESTS,
            threshold=Option(
                "--min-sentences",
                "of C4: drop pages of which fewer sentences are left",
                "N",
                type=int,
            ),
        )
    }

    def __init__(self, threshold: int = 3) -> None:
        self.threshold = threshold

    def score(self, records: Sequence[Document]) -> list[int]:
        return [_count(document) for document in records]

    def accept(self, score: int) -> bool:
        return score >= self.threshold


def _count(document: Document) -> int:
    lines = document.text.split("\n")
    return sum(len(split_sentences(line, document.language)) for line in lines)
