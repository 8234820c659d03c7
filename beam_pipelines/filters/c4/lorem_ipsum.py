"""Drops pages of placeholder text (C4, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import PAGES, Use
from beam_pipelines.records.records import Document, Sentence
from labse_tf.files.record_kinds import MONOLINGUAL


class LoremIpsum:
    """Score: number of occurrences of "lorem ipsum" in the page or line, ignoring case.

    >>> LoremIpsum().score([Document("Lorem ipsum dolor\\nsit amet", "en")])
    [1]
    """

    name = "lorem_ipsum"
    uses = {MONOLINGUAL: Use(order=10, stage=PAGES)}
    threshold = 0

    def score(self, records: Sequence[Document | Sentence]) -> list[int]:
        return [record.text.lower().count("lorem ipsum") for record in records]

    def accept(self, score: int) -> bool:
        return score <= self.threshold
