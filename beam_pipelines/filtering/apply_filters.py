"""The step that drops records and counts the reasons."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence

import apache_beam as beam

from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filtering.learning import teach
from beam_pipelines.filtering.scores import reasons_by_scores
from beam_pipelines.filters import AnyFilter, ModelFilter, find_reasons
from beam_pipelines.records.records import Batch, ScoredBatch
from beam_pipelines.reporting.report import OTHER_LANGUAGE, READ
from labse_tf.languages import is_code


class ApplyFilters(beam.PTransform):
    """PCollection of `Batch` -> (batches of the records that pass, counts, examples).

    Records in unsupported languages are dropped as OTHER_LANGUAGE. Any other dropped record is
    counted under the first filter that does not accept it. Counts are `((language, name), number)`,
    where name is READ, OTHER_LANGUAGE or the name of a filter.

    Args:
      filters: in the order in which they are applied.
      learned: what those that learn have learned, see `learning.learn`.
      options: those of the job. With `scores` or `from_scores` the batches are `ScoredBatch`, and
        nothing is scored. The output keeps the scores of `best_by`, as `ScoredBatch`.
    """

    def __init__(
        self,
        filters: Sequence[AnyFilter],
        learned: Mapping[str, beam.pvalue.AsDict],
        options: JobOptions,
    ) -> None:
        super().__init__()
        scored = options.scores or options.from_scores
        self._models = [
            filter_ for filter_ in filters if isinstance(filter_, ModelFilter) and not scored
        ]
        self._filters = [filter_ for filter_ in filters if filter_ not in self._models]
        self._learned = dict(learned)
        self._options = options

    def expand(self, batches):
        first = _FilterBatch(self._filters, self._options)
        outputs = [batches | "Filters" >> _par_do(first, **self._learned)]
        for model in self._models:
            scored = outputs[-1].batches | f"Score {model.name}" >> model.scoring_step()
            drop = _FilterBatch([model], self._options, count_read=False)
            outputs.append(scored | f"Drop {model.name}" >> _par_do(drop))
        counts = [output.counts for output in outputs] | "Counts" >> beam.Flatten()
        examples = [output.examples for output in outputs] | "Examples" >> beam.Flatten()
        return outputs[-1].batches, counts, examples


def _par_do(function: beam.DoFn, **side_inputs):
    step = beam.ParDo(function, **side_inputs)
    return step.with_outputs("counts", "examples", main="batches")


class _FilterBatch(beam.DoFn):
    def __init__(
        self, filters: list[AnyFilter], options: JobOptions, *, count_read: bool = True
    ) -> None:
        self._filters = filters
        self._options = options
        self._count_read = count_read

    def process(self, batch: Batch | ScoredBatch, **learned) -> Iterator:
        by_reason = collections.defaultdict(list)
        kept = []
        for place, reason in enumerate(self._reasons(batch, learned)):
            if reason is None:
                kept.append(place)
            else:
                by_reason[reason].append(batch.records[place])
        if kept:
            yield self._take(batch, kept)
        counts = {reason: len(records) for reason, records in by_reason.items()}
        if self._count_read:
            counts[READ] = len(batch.records)
        for name, number in counts.items():
            yield beam.pvalue.TaggedOutput("counts", ((batch.language, name), number))
        yield from self._options.draw_examples(by_reason)

    def _take(self, batch: Batch | ScoredBatch, places: Sequence[int]) -> Batch | ScoredBatch:
        records = [batch.records[place] for place in places]
        name = self._options.best_by
        scores = getattr(batch, "scores", {}).get(name)
        if scores is None:
            return Batch(batch.language, records)
        kept = {name: [scores[place] for place in places]}
        return ScoredBatch(batch.language, records, kept)

    def _reasons(
        self, batch: Batch | ScoredBatch, learned: Mapping[str, Mapping]
    ) -> list[str | None]:
        if not is_code(batch.language):
            return [OTHER_LANGUAGE] * len(batch.records)
        if isinstance(batch, ScoredBatch):
            return reasons_by_scores(self._filters, batch)
        return find_reasons(teach(self._filters, learned), batch.records)
