"""Drops pairs by contrastive data selection: those that fine-tuning does not make more probable."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from beam_pipelines.filters import Option, Use
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import BITEXT

if TYPE_CHECKING:
    import apache_beam as beam


@dataclasses.dataclass(frozen=True)
class Cds:
    """Score: `cds_scores`, in nats per token, by the run `run_dir`, which all workers can access.

    If scores are read, `run_dir` is "".

    >>> [Cds("runs/cds", threshold=0.12).accept(score) for score in (0.11, 0.12)]
    [False, True]
    """

    run_dir: str
    threshold: float

    name = "contrastive"
    ranks = True  # `--keep best` keeps the pairs that it scores highest.
    uses = {
        BITEXT: Use(
            order=200,
            asked_by=Option(
                "--cds",
                "drop pairs by contrastive data selection: a run of `labse corpus train-cds`",
                "RUN_DIR",
                type=None,
            ),
            threshold=Option(
                "--min-cds-score",
                "with --cds, or --from-scores of a job that had it: drop pairs with a lower score; "
                "`labse corpus calibrate` tells which",
            ),
        )
    }

    @classmethod
    def from_options(
        cls, run_dir: str | None, threshold: float | None, *, from_scores: bool
    ) -> Cds | None:
        """Returns the filter that these options ask for, or None.

        Raises InputError for one option without the other, or a missing run dir.
        """
        if run_dir is None and (threshold is None or from_scores):
            return None if threshold is None else cls("", threshold)
        if run_dir is None or threshold is None:
            remedy = "give both; `labse corpus calibrate` finds the score"
            raise InputError("--cds and --min-cds-score go together", remedy=remedy)
        from beam_pipelines.runtime.storage import STORAGE, absolute, local_copy
        from labse_tf.training.runs.run_dir import open_existing

        run_dir = STORAGE.resolve(run_dir)
        open_existing(local_copy(run_dir))
        return cls(absolute(run_dir), threshold)

    @property
    def model_path(self) -> str:
        return self.run_dir

    def scoring_step(self) -> beam.PTransform:
        from labse_tf.systems.cds.score_job import score_pairs

        return score_pairs(self.run_dir, self.name)

    def accept(self, score: float) -> bool:
        return score >= self.threshold
