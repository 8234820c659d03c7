"""Drops pairs that a translator does not like better once it is tuned on trusted pairs."""

from __future__ import annotations

import dataclasses

from beam_pipelines.contrastive import ScoreContrast


@dataclasses.dataclass(frozen=True)
class Contrastive:
    """Contrastive data selection; the score is that of `labse_tf.contrastive.scorer`.

    Attributes:
      run_dir: of `labse corpus train-cds`; all workers must see it.
      threshold: the lowest score that is kept, nats a token. Only pairs that people marked tell
        where it should be: `labse corpus calibrate`.
    """

    run_dir: str
    threshold: float

    name = "contrastive"

    def scoring_step(self) -> ScoreContrast:
        return ScoreContrast(self.run_dir, self.name)

    def accept(self, score: float) -> bool:
        return score >= self.threshold
