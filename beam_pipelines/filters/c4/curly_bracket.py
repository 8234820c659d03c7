"""Drops pages with program code: C4 tells them by a curly bracket (section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import PAGES, Use
from beam_pipelines.records.records import Document, Sentence
from labse_tf.files.record_kinds import MONOLINGUAL


class CurlyBracket:
    """Score: how many opening curly brackets the page, or line, has.

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
