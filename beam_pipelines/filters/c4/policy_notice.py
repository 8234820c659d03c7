"""Drops lines that point to a site's policies (C4, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import LINES, Use
from beam_pipelines.records.records import Sentence
from labse_tf.files.record_kinds import MONOLINGUAL

# C4's own list. English only, because pages in all languages have such notices in English.
_NOTICES = (
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)


class PolicyNotice:
    """Score: how many of C4's phrases occur in the line, ignoring case.

    >>> PolicyNotice().score([Sentence("Terms of Use and Privacy Policy", "en")])
    [2]
    """

    name = "policy_notice"
    uses = {MONOLINGUAL: Use(order=40, stage=LINES)}
    threshold = 0

    def score(self, records: Sequence[Sentence]) -> list[int]:
        return [
            sum(notice in text for notice in _NOTICES)
            for text in (record.text.lower() for record in records)
        ]

    def accept(self, score: int) -> bool:
        return score <= self.threshold
