"""Filters, found by their presence in this folder. A filter is a class with

  name       the reason under which `report.json` counts dropped records
  uses       kind of records that it is for -> how the command uses it, see `Use`; user-defined
             filters, which are named on the command line, do not need it
  threshold  its limit, by default the class's
  score      a batch of records, of one language for RECORDS -> a number for each
  accept     score -> whether the record is kept

Most inherit from `AtLeast`, `AtMost` or `Below`, and have `score_record` in place of `score`; a
user's filter needs not. Score and limit are separate so that limits can be changed without
computing the scores again. Filters are pickled for the workers, so large data is loaded there, at
the first batch. Some filters also have

  learn         a transform, batches of records -> (language, what the filter learns first)
  with_learned  a dict of these -> the filter that uses them
  knows         language -> whether it can judge it; it accepts records of other languages
  scoring_step  in place of `score`, a pipeline step for a model: see `ModelFilter`
  model_path    the folder of files that it reads on the workers, "" for none
  from_options  builds it, if its options have further rules

docs/architecture.md says how to add a filter. The help of the commands imports these files, so they
import Beam, NumPy and other large libraries inside functions.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from beam_pipelines.records import Record

if TYPE_CHECKING:
    import apache_beam as beam

# Filters are applied in stages, in this order. All but the last are for monolingual text: C4's
# heuristics see whole pages, the lines of the remaining pages, and the rest of these pages; then
# the lengths of lines are checked, before lines are split.
STAGES = PAGES, LINES, RESTS, LENGTHS, RECORDS = ("pages", "lines", "rests", "lengths", "records")


class Option(NamedTuple):
    """A command-line option; in Python it is a keyword, its name with underscores."""

    name: str  # Such as "--max-length-ratio".
    help: str  # A default is appended.
    metavar: str | None = "X"  # Stands for the value in the help; None for a switch.
    default: float | None = None  # None for the threshold of the filter's class, if it has one.
    type: Callable[[str], Any] | None = float  # The value's; None for a path.

    @property
    def keyword(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")


class Use(NamedTuple):
    """How a command uses a filter for one kind of records.

    Attributes:
      order: within a stage, the filter with the lowest number is applied first. Cheap filters come
        first, models last (from 200); user-defined filters are at 150.
      threshold: the option that sets it; None if it is fixed.
      asked_by: the option without which the filter is left out: a switch, or the first argument of
        the constructor, such as a model. None for a filter that is always applied.
      stage: one of STAGES.
    """

    order: int
    threshold: Option | None = None
    asked_by: Option | None = None
    stage: str = RECORDS


class Filter(abc.ABC):
    name: str
    uses: ClassVar[Mapping[str, Use]]
    threshold: float
    score_record: Callable[[Record], float]  # Not needed by a filter with its own `score`.

    def __init__(self, threshold: float | None = None) -> None:
        if threshold is not None:
            self.threshold = threshold

    def score(self, records: Sequence[Record]) -> Sequence[float]:
        return list(map(self.score_record, records))

    @abc.abstractmethod
    def accept(self, score: float) -> bool:
        """Returns whether a record with this score is kept."""


class AtLeast(Filter):
    """Accepts scores from the threshold."""

    def accept(self, score: float) -> bool:
        return score >= self.threshold


class AtMost(Filter):
    """Accepts scores up to the threshold."""

    def accept(self, score: float) -> bool:
        return score <= self.threshold


class Below(Filter):
    """Accepts scores below the threshold."""

    def accept(self, score: float) -> bool:
        return score < self.threshold


@runtime_checkable
class ModelFilter(Protocol):
    """A filter so expensive that it scores only records that all other filters accept."""

    name: str
    threshold: float

    def scoring_step(self) -> beam.PTransform:
        """Returns the step `Batch` or `ScoredBatch` -> `ScoredBatch`, with this filter's scores."""

    def accept(self, score: float) -> bool: ...


AnyFilter = Filter | ModelFilter


def divide_models(filters: Sequence[AnyFilter]) -> tuple[list[Filter], list[ModelFilter]]:
    """Returns the filters without a model, and those with one."""
    models = [filter_ for filter_ in filters if isinstance(filter_, ModelFilter)]
    return [filter_ for filter_ in filters if filter_ not in models], models


def find_reasons(filters: Sequence[Filter], records: Sequence[Record]) -> list[str | None]:
    """Returns for each record the name of the first filter that does not accept it, or None.

    A filter sees only records that all earlier filters accept, so cheap filters come first.
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
