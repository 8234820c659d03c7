"""The configuration of `labse distill`."""

from __future__ import annotations

from dataclasses import field

from pydantic import model_validator

from labse_tf.config import Config, TrainConfig, section
from labse_tf.config.sections import require_training_fits


@section
class DistillConfig:
    """Training on the vectors of another model; `train` has the other settings.

    `teacher` is a model dir. `monolingual` are corpora of sentences used in addition to both sides
    of `train.bitext`; languages are sampled over all of them by `train.language_exponent`.
    """

    teacher: str = ""
    monolingual: list[str] = field(default_factory=list)


@section
class DistillRun(Config):
    """The configuration of `labse distill`."""

    own_section = "train"
    distill: DistillConfig = field(default_factory=DistillConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    @model_validator(mode="after")
    def _check(self) -> DistillRun:
        if self.train.bitext or self.distill.monolingual:
            require_training_fits(self.train, self.encoder)
        return self
