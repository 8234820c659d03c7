"""The step that drops records and counts why."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Sequence

import apache_beam as beam

from beam_pipelines.filters import Filter, find_reasons
from beam_pipelines.records import Batch
from beam_pipelines.report import OTHER_LANGUAGE, READ
from labse_tf.languages import LANGUAGES


class ApplyFilters(beam.PTransform):
    """PCollection of `Batch` -> (the batches without what the filters drop, counts).

    Records of languages that are none of the paper's are dropped as OTHER_LANGUAGE. Of the others,
    the first filter that does not accept a record is the reason that counts. Filters that learn
    from the corpus (see `filters`) see all of it before any record is judged. Counts are
    `((language, name), number)`, where name is READ, OTHER_LANGUAGE or the name of a filter.
    """

    def __init__(self, filters: Sequence[Filter]) -> None:
        super().__init__()
        self._filters = list(filters)

    def expand(self, batches):
        learned = {
            filter_.name: beam.pvalue.AsDict(batches | f"Learn {filter_.name}" >> filter_.learn())
            for filter_ in self._filters
            if hasattr(filter_, "learn")
        }
        outputs = batches | beam.ParDo(_FilterBatch(self._filters), **learned).with_outputs(
            "counts", main="batches"
        )
        return outputs.batches, outputs.counts


class _FilterBatch(beam.DoFn):
    def __init__(self, filters: list[Filter]) -> None:
        self._filters = filters

    def process(self, batch: Batch, **learned) -> Iterator:
        filters = [
            filter_.with_learned(learned[filter_.name]) if filter_.name in learned else filter_
            for filter_ in self._filters
        ]
        counts = collections.Counter({READ: len(batch.records)})
        kept = []
        if batch.language not in LANGUAGES:
            counts[OTHER_LANGUAGE] = len(batch.records)
        else:
            reasons = find_reasons(filters, batch.records)
            for record, reason in zip(batch.records, reasons, strict=True):
                if reason is None:
                    kept.append(record)
                else:
                    counts[reason] += 1
        if kept:
            yield Batch(batch.language, kept)
        for name, number in counts.items():
            yield beam.pvalue.TaggedOutput("counts", ((batch.language, name), number))
