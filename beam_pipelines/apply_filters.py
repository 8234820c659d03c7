"""The step that drops records and counts why."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence

import apache_beam as beam

from beam_pipelines.drop_examples import draw_examples
from beam_pipelines.filters import Filter, find_reasons
from beam_pipelines.learning import learn, teach
from beam_pipelines.records import Batch
from beam_pipelines.report import OTHER_LANGUAGE, READ
from beam_pipelines.scores import ScoredBatch, reasons_by_scores
from labse_tf.languages import LANGUAGES


class ApplyFilters(beam.PTransform):
    """PCollection of `Batch` -> (the batches without what the filters drop, counts, examples).

    Records of languages that are none of the paper's are dropped as OTHER_LANGUAGE. Of the others,
    the first filter that does not accept a record is the reason that counts. Filters that learn
    from the corpus (see `filters`) see all of it before any record is judged. Counts are
    `((language, name), number)`, where name is READ, OTHER_LANGUAGE or the name of a filter.

    Args:
      filters: in the order that they are asked.
      examples: so many examples of each reason are drawn from a batch.
      seed: of this draw.
      scored: the batches are `ScoredBatch`: nothing is learnt or scored.
    """

    def __init__(
        self, filters: Sequence[Filter], examples: int = 0, seed: int = 0, *, scored: bool = False
    ) -> None:
        super().__init__()
        self._filters = list(filters)
        self._examples = examples
        self._seed = seed
        self._scored = scored

    def expand(self, batches):
        learned = {} if self._scored else learn(batches, self._filters)
        filter_batch = _FilterBatch(self._filters, self._examples, self._seed)
        outputs = batches | beam.ParDo(filter_batch, **learned).with_outputs(
            "counts", "examples", main="batches"
        )
        return outputs.batches, outputs.counts, outputs.examples


class _FilterBatch(beam.DoFn):
    def __init__(self, filters: list[Filter], examples: int, seed: int) -> None:
        self._filters = filters
        self._examples = examples
        self._seed = seed

    def process(self, batch: Batch | ScoredBatch, **learned) -> Iterator:
        by_reason = collections.defaultdict(list)
        for record, reason in zip(batch.records, self._reasons(batch, learned), strict=True):
            by_reason[reason].append(record)
        kept = by_reason.pop(None, None)
        if kept:
            yield Batch(batch.language, kept)
        counts = {reason: len(records) for reason, records in by_reason.items()}
        counts[READ] = len(batch.records)
        for name, number in counts.items():
            yield beam.pvalue.TaggedOutput("counts", ((batch.language, name), number))
        if self._examples:
            for reason, records in by_reason.items():
                examples = draw_examples(reason, records, self._examples, self._seed)
                yield beam.pvalue.TaggedOutput("examples", examples)

    def _reasons(
        self, batch: Batch | ScoredBatch, learned: Mapping[str, Mapping]
    ) -> list[str | None]:
        if batch.language not in LANGUAGES:
            return [OTHER_LANGUAGE] * len(batch.records)
        if isinstance(batch, ScoredBatch):
            return reasons_by_scores(self._filters, batch)
        return find_reasons(teach(self._filters, learned), batch.records)
