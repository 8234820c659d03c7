"""Drops untranslated pairs, whose sides are the same text."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filters import Use
from beam_pipelines.records.records import Pair
from labse_tf.files.record_kinds import BITEXT


class IdenticalSides:
    """Score: 1.0 if the sides differ only in letter case and white space, else 0.0.

    >>> IdenticalSides().score([Pair("PARIS", "Paris", "fr"), Pair("Paris", "Париж", "ru")])
    [1.0, 0.0]
    """

    name = "identical_sides"
    uses = {BITEXT: Use(order=40)}
    threshold = 1.0

    def score(self, records: Sequence[Pair]) -> list[float]:
        return [float(_essence(pair.source) == _essence(pair.target)) for pair in records]

    def accept(self, score: float) -> bool:
        return score < self.threshold


def _essence(text: str) -> str:
    return "".join(text.casefold().split())
