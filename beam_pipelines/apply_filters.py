"""The step that drops records and counts why."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence

import apache_beam as beam

from beam_pipelines.drop_examples import draw_examples
from beam_pipelines.filters import Filter, find_reasons
from beam_pipelines.records import Batch
from beam_pipelines.report import OTHER_LANGUAGE, READ
from beam_pipelines.scores import ScoredBatch, reasons_by_scores
from labse_tf.languages import LANGUAGES


class ApplyFilters(beam.PTransform):
    """PCollection of `Batch` -> (the batches without what the filters drop, counts, examples).

    Records of languages that are none of the paper's are dropped as OTHER_LANGUAGE. Of the others,
    the first filter that does not accept a record is the reason that counts. Counts are
    `((language, name), number)`, where name is READ, OTHER_LANGUAGE or the name of a filter.

    Args:
      filters: in the order that they are asked.
      examples: so many examples of each reason are drawn from a batch.
      seed: of this draw.

    Batches may be `ScoredBatch`: then nothing is scored.
    """

    def __init__(self, filters: Sequence[Filter], examples: int = 0, seed: int = 0) -> None:
        super().__init__()
        self._filter = _FilterBatch(list(filters), examples, seed)

    def expand(self, batches):
        outputs = batches | beam.ParDo(self._filter).with_outputs(
            "counts", "examples", main="batches"
        )
        return outputs.batches, outputs.counts, outputs.examples


class _FilterBatch(beam.DoFn):
    def __init__(self, filters: list[Filter], examples: int, seed: int) -> None:
        self._filters = filters
        self._examples = examples
        self._seed = seed

    def process(self, batch: Batch | ScoredBatch) -> Iterator:
        by_reason = collections.defaultdict(list)
        for record, reason in zip(batch.records, self._reasons(batch), strict=True):
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

    def _reasons(self, batch: Batch | ScoredBatch) -> list[str | None]:
        if batch.language not in LANGUAGES:
            return [OTHER_LANGUAGE] * len(batch.records)
        if isinstance(batch, ScoredBatch):
            return reasons_by_scores(self._filters, batch)
        return find_reasons(self._filters, batch.records)
