"""Filters: one a file. A filter has

  name       the reason that `report.json` counts dropped records under
  threshold  its limit, with a declared default
  score      record -> number
  accept     score -> whether the record stays

Score and limit are apart so that scores can be kept and limits moved without computing them again.
To add one: write its file, then name it in the list of `filter_monolingual.py` or
`filter_bitext.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from beam_pipelines.records import Record


class Filter(Protocol):
    """What a filter is; there is no need to inherit from it."""

    name: str
    threshold: float

    def score(self, record: Record) -> float: ...

    def accept(self, score: float) -> bool: ...


def first_reason(filters: Sequence[Filter], record: Record) -> str | None:
    """Returns the name of the first filter that does not accept the record, or None."""
    for filter_ in filters:
        if not filter_.accept(filter_.score(record)):
            return filter_.name
    return None
