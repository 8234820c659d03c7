"""Drops pages with program code, which C4 recognizes by a curly bracket (section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import PAGES, Use
from beam_pipelines.records.records import Document, Sentence
from labse_tf.files.record_kinds import MONOLINGUAL


class CurlyBracket:
    """Score: number of opening curly brackets in the page or line.

    >>> CurlyBracket().score([Document("if (x) { y(); }", "en")])
    [1]
    """

    name = "curly_bracket"
    uses = {MONOLINGUAL: Use(order=20, stage=PAGES)}
    threshold = 0

    def score(self, records: Sequence[Document | Sentence]) -> list[int]:
        return [record.text.count("{") for record in records]

    def accept(self, score: int) -> bool:
        return score <= self.threshold
