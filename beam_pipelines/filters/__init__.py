"""Filters: one a file. A filter has

  name       the reason that `report.json` counts dropped records under
  threshold  its limit, with a declared default
  score      a batch of records of one language -> a number for each
  accept     score -> whether the record stays

Score and limit are apart so that scores can be kept and limits moved without computing them again.
Filters travel to the workers pickled: what is large is loaded there, at the first batch.
A filter that needs to know the corpus first also has

  learn         a transform, batches of records -> (language, what it wants to know)
  with_learned  a dict of these -> the filter that knows

A filter by a model has a step of the pipeline in place of `score`: see `ModelFilter`.
To add one: write its file, then name it in the list of `filter_monolingual.py` or
`filter_bitext.py`, the models last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import apache_beam as beam

from beam_pipelines.records.records import Record


class Filter(Protocol):
    """What a filter is; there is no need to inherit from it."""

    name: str
    threshold: float

    def score(self, records: Sequence[Record]) -> Sequence[float]: ...

    def accept(self, score: float) -> bool: ...


@runtime_checkable
class ModelFilter(Protocol):
    """A filter whose scores cost so much that only what all others accept gets them."""

    name: str
    threshold: float

    def scoring_step(self) -> beam.PTransform:
        """Returns the step `Batch` or `ScoredBatch` -> `ScoredBatch`, with this filter's scores."""
        ...

    def accept(self, score: float) -> bool: ...


AnyFilter = Filter | ModelFilter


def find_reasons(filters: Sequence[Filter], records: Sequence[Record]) -> list[str | None]:
    """Returns for each record the name of the first filter that does not accept it, or None.

    A filter sees only what those before it accept, so the cheap ones go first.
    """
    reasons: list[str | None] = [None] * len(records)
    left = list(range(len(records)))
    for filter_ in filters:
        scores = filter_.score([records[place] for place in left])
        for place, score in zip(left, scores, strict=True):
            if not filter_.accept(score):
                reasons[place] = filter_.name
        left = [place for place in left if reasons[place] is None]
    return reasons
