"""Contrastive data selection as a step of a pipeline: RunInference over batches of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.ml.inference.base import ModelHandler, RunInference

from beam_pipelines.errors import input_errors_marked
from beam_pipelines.filters.contrastive import Contrastive
from beam_pipelines.records import Batch

_Scored = tuple[Batch, list[float]]


class ScoreContrast(beam.PTransform):
    """PCollection of `Batch` of pairs -> PCollection of (`Batch`, a score for each pair).

    Scores are those of `labse_tf.contrastive.scorer.contrastive_scores`.
    """

    def __init__(self, run_dir: str) -> None:
        super().__init__()
        self._run_dir = run_dir

    def expand(self, batches):
        return batches | "Infer" >> RunInference(_TranslatorHandler(self._run_dir))


class ApplyContrast(beam.PTransform):
    """PCollection of `Batch` -> (the batches without what the filter drops, counts).

    Counts are `((language, name of the filter), number)`. It goes behind all other filters: a pair
    costs it thousands of times as much as any of them.
    """

    def __init__(self, contrastive: Contrastive) -> None:
        super().__init__()
        self._contrastive = contrastive

    def expand(self, batches):
        outputs = (
            batches
            | "Score" >> ScoreContrast(self._contrastive.run_dir)
            | "Drop" >> beam.ParDo(_Drop(self._contrastive)).with_outputs("counts", main="batches")
        )
        return outputs.batches, outputs.counts


class _TranslatorHandler(ModelHandler):
    """Our `Batch` is RunInference's example: batching again would only take them apart.

    The scorer cuts a batch by length, into few static shapes.
    """

    def __init__(self, run_dir: str) -> None:
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._run_dir = run_dir

    def load_model(self):
        # RunInference calls this in its DoFn's setup().
        from labse_tf.contrastive.scorer import TranslatorScorer

        with input_errors_marked():
            return TranslatorScorer(self._run_dir)

    def run_inference(
        self, batch: Sequence[Batch], model, inference_args: dict[str, Any] | None = None
    ) -> Iterator[_Scored]:
        from labse_tf.contrastive.scorer import contrastive_scores

        for one in batch:
            noisy, trusted = model.log_likelihoods(one.records).T
            yield one, contrastive_scores(noisy, trusted).tolist()


class _Drop(beam.DoFn):
    def __init__(self, contrastive: Contrastive) -> None:
        self._contrastive = contrastive

    def process(self, scored: _Scored) -> Iterator:
        batch, scores = scored
        kept = [
            record
            for record, score in zip(batch.records, scores, strict=True)
            if self._contrastive.accept(score)
        ]
        if kept:
            yield Batch(batch.language, kept)
        dropped = len(batch.records) - len(kept)
        yield beam.pvalue.TaggedOutput(
            "counts", ((batch.language, self._contrastive.name), dropped)
        )
