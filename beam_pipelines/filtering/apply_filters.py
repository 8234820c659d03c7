"""Applies the filters: drops records and counts the reasons, or computes the scores of all."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence

import apache_beam as beam

from beam_pipelines.filtering.job_options import JobOptions, drop_step, flatten_dropped
from beam_pipelines.filters import AnyFilter, Filter, divide_models, find_reasons
from beam_pipelines.records import Batch, ScoredBatch
from beam_pipelines.reporting import OTHER_LANGUAGE, READ
from labse_tf.languages import is_code


def learn(batches, filters: Sequence[AnyFilter]) -> dict[str, beam.pvalue.AsDict]:
    """Returns side inputs: name of a filter that learns -> what it learns from these batches."""
    return {
        filter_.name: beam.pvalue.AsDict(batches | f"Learn {filter_.name}" >> filter_.learn())
        for filter_ in filters
        if hasattr(filter_, "learn")
    }


def _teach(filters: Sequence[Filter], learned: Mapping[str, Mapping]) -> list[Filter]:
    return [
        filter_.with_learned(learned[filter_.name]) if filter_.name in learned else filter_
        for filter_ in filters
    ]


@beam.ptransform_fn
def ScoreBatches(batches, filters: Sequence[AnyFilter], learned: Mapping[str, beam.pvalue.AsDict]):
    """PCollection of `Batch` -> `ScoredBatch` with the scores of all filters; `learned` as below.

    Filters also score the records that earlier filters drop.
    """
    others, models = divide_models(filters)
    batches = batches | "Filters" >> beam.Map(_score_batch, others, **learned)
    for model in models:
        batches = batches | model.name >> model.scoring_step()
    return batches


def _score_batch(batch: Batch, filters: Sequence[Filter], **learned) -> ScoredBatch:
    scores = {}
    if is_code(batch.language):
        for filter_ in _teach(filters, learned):
            scores[filter_.name] = list(map(float, filter_.score(batch.records)))
    return ScoredBatch(batch.language, batch.records, scores)


def reasons_by_scores(filters: Sequence[AnyFilter], batch: ScoredBatch) -> list[str | None]:
    """Returns for each record the name of the first filter that does not accept its score."""
    reasons: list[str | None] = [None] * len(batch.records)
    for filter_ in filters:
        for place, score in enumerate(batch.scores[filter_.name]):
            if reasons[place] is None and not filter_.accept(score):
                reasons[place] = filter_.name
    return reasons


@beam.ptransform_fn
def ApplyFilters(
    batches,
    filters: Sequence[AnyFilter],
    learned: Mapping[str, beam.pvalue.AsDict],
    options: JobOptions,
):
    """PCollection of `Batch` -> (batches of the records that pass, counts, examples).

    Records in unsupported languages are dropped as OTHER_LANGUAGE. Any other dropped record is
    counted under the first filter that does not accept it.

    Args:
      filters: in the order in which they are applied.
      learned: from `learn`.
      options: with `scores` or `from_scores` the batches are `ScoredBatch`, and nothing is scored.
        The output keeps the scores of `best_by`, as `ScoredBatch`.
    """
    others, models = divide_models(filters)
    if options.scores or options.from_scores:
        others, models = list(filters), []
    outputs = [batches | "Filters" >> drop_step(_filter_batch, others, options, True, **learned)]
    for model in models:
        scored = outputs[-1].batches | f"Score {model.name}" >> model.scoring_step()
        drop = drop_step(_filter_batch, [model], options, False)
        outputs.append(scored | f"Drop {model.name}" >> drop)
    return outputs[-1].batches, *flatten_dropped(outputs)


def _filter_batch(
    batch: Batch | ScoredBatch,
    filters: Sequence[AnyFilter],
    options: JobOptions,
    counts_read: bool,
    **learned,
) -> Iterator:
    if not is_code(batch.language):
        reasons = [OTHER_LANGUAGE] * len(batch.records)
    elif isinstance(batch, ScoredBatch):
        reasons = reasons_by_scores(filters, batch)
    else:
        reasons = find_reasons(_teach(filters, learned), batch.records)
    kept, dropped = [], collections.defaultdict(list)
    for place, reason in enumerate(reasons):
        if reason is None:
            kept.append(place)
        else:
            dropped[reason].append(batch.records[place])
    if kept:
        records = [batch.records[place] for place in kept]
        scores = getattr(batch, "scores", {}).get(options.best_by)
        if scores is None:
            yield Batch(batch.language, records)
        else:
            best_by = {options.best_by: [scores[place] for place in kept]}
            yield ScoredBatch(batch.language, records, best_by)
    counts = {(batch.language, reason): len(records) for reason, records in dropped.items()}
    if counts_read:
        counts[batch.language, READ] = len(batch.records)
    yield from options.report_dropped(counts, dropped)
