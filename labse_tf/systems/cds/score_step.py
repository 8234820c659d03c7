"""The scores of contrastive data selection (CDS), as a pipeline step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.ml.inference.base import ModelHandler, RunInference

from beam_pipelines.records.records import Batch, ScoredBatch
from beam_pipelines.runtime.errors import input_errors_marked
from beam_pipelines.runtime.storage import local_copy
from labse_tf.languages import is_code


class ScoreCds(beam.PTransform):
    """PCollection of `Batch` or `ScoredBatch` of pairs -> `ScoredBatch` with one more score.

    Scores are those of `labse_tf.systems.cds.scorer.cds_scores`. Pairs in languages not in the
    paper get none.

    Args:
      run_dir: of `labse corpus train-cds`.
      name: of the score.
    """

    def __init__(self, run_dir: str, name: str) -> None:
        super().__init__()
        self._handler = _TranslatorHandler(run_dir, name)

    def expand(self, batches):
        return batches | "Infer" >> RunInference(self._handler)


class _TranslatorHandler(ModelHandler):
    """Treats one of our batches as one example of RunInference, so that it does not batch again.

    The scorer itself divides a batch by length.
    """

    def __init__(self, run_dir: str, name: str) -> None:
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._run_dir = run_dir
        self._name = name

    def load_model(self):
        # RunInference calls this in its DoFn's setup(), once per process.
        from labse_tf.systems.cds.scorer import TranslatorScorer

        with input_errors_marked():
            return TranslatorScorer(local_copy(self._run_dir))

    def run_inference(
        self,
        batch: Sequence[Batch | ScoredBatch],
        model,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterator[ScoredBatch]:
        from labse_tf.systems.cds.scorer import cds_scores

        for one in batch:
            scores = dict(one.scores) if isinstance(one, ScoredBatch) else {}
            if is_code(one.language):
                noisy, trusted = model.log_likelihoods(one.records).T
                scores[self._name] = cds_scores(noisy, trusted).tolist()
            yield ScoredBatch(one.language, one.records, scores)
