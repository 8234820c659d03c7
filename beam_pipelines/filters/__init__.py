"""Filters: one a file, found by its presence in this folder. A filter is a class with

  name       the reason that `report.json` counts dropped records under
  uses       the kinds of records that it is for -> how the command uses it, see `Use`; a user's
             own filter, which the command names, needs none
  threshold  its limit, with a declared default
  score      a batch of records of one language -> a number for each
  accept     score -> whether the record stays

Score and limit are apart so that scores can be kept and limits moved without computing them again.
Filters travel to the workers pickled: what is large is loaded there, at the first batch.
A filter that needs to know the corpus first also has

  learn         a transform, batches of records -> (language, what it wants to know)
  with_learned  a dict of these -> the filter that knows

A filter by a model has a step of the pipeline in place of `score`: see `ModelFilter`.

To add one, write its file, as short as `length_ratio.py`; nothing else needs a change. The help of
the commands imports these files, so they import Beam and other large libraries inside functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from beam_pipelines.records.records import Record

if TYPE_CHECKING:
    import apache_beam as beam

# What a filter sees, in the order in which text goes through a job. All but the last are for
# monolingual text: C4's heuristics see whole pages, the lines of what is left of them, and what is
# then left of the pages; then come the lengths of lines, before these are split into sentences.
STAGES = PAGES, LINES, RESTS, LENGTHS, RECORDS = ("pages", "lines", "rests", "lengths", "records")


class Option(NamedTuple):
    """An option of the command line; in Python a keyword, its name with underscores.

    Attributes:
      name: such as "--max-length-ratio".
      help: what it does; a default is added to it.
      metavar: stands for the value in the help; None for a switch.
      default: None for that of the filter's constructor, if it has one.
      type: of the value; None for a path.
    """

    name: str
    help: str
    metavar: str | None = "X"
    default: float | None = None
    type: Callable[[str], Any] | None = float

    @property
    def keyword(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")


class Use(NamedTuple):
    """How a command uses a filter for one kind of records.

    Attributes:
      order: within a stage the filter with the lowest number judges first. Cheap filters come
        first, models last (from 200); a user's own filters judge at 150.
      threshold: the option that sets it; None if it is fixed.
      asked_by: the option without which the filter is left out: a switch, or the first argument of
        the constructor, such as a model. None for a filter that always judges.
      stage: one of STAGES.
    """

    order: int
    threshold: Option | None = None
    asked_by: Option | None = None
    stage: str = RECORDS


class Filter(Protocol):
    """What a filter is; there is no need to inherit from it."""

    name: str
    uses: Mapping[str, Use]
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
