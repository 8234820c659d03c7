"""Drops lines about JavaScript: mostly requests to enable it (C4, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import LINES, Use
from beam_pipelines.records.records import Sentence
from labse_tf.files.record_kinds import MONOLINGUAL


class Javascript:
    """Score: number of occurrences of "javascript" in the line, ignoring case.

    >>> Javascript().score([Sentence("Please enable JavaScript.", "en")])
    [1]
    """

    name = "javascript"
    uses = {MONOLINGUAL: Use(order=30, stage=LINES)}
    threshold = 0

    def score(self, records: Sequence[Sentence]) -> list[int]:
        return [record.text.lower().count("javascript") for record in records]

    def accept(self, score: int) -> bool:
        return score <= self.threshold
