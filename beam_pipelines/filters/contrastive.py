"""Drops pairs that a translator does not like better once it is tuned on trusted pairs."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Contrastive:
    """The limit of contrastive data selection; `beam_pipelines.contrastive` computes the scores.

    Unlike other filters it has no `score`: loading two translators and keeping one copy of them a
    process is what Beam's RunInference is for, and that is a step of its own in a pipeline.

    Attributes:
      run_dir: of `labse corpus train-cds`; all workers must see it.
      threshold: the lowest score that is kept, nats a token. Only pairs that people marked tell
        where it should be: `labse corpus calibrate`.
    """

    run_dir: str
    threshold: float

    name = "contrastive"

    def accept(self, score: float) -> bool:
        return score >= self.threshold
