"""The configuration of `labse mine-negatives`."""

from __future__ import annotations

from dataclasses import field

from pydantic import model_validator

from labse_tf.config import Config, OptimizerConfig, TrainConfig, section
from labse_tf.config.sections import Count, Dropout, NotNegative, Range, require, require_dims


@section
class AveragingEncoderConfig:
    """A deep averaging network: the weaker encoder that finds hard negatives.

    Bigrams of tokens are hashed to `bigram_buckets` embedding rows; with 0, bigrams are not used.
    """

    hidden_size: Count = 256
    num_layers: NotNegative = 2
    bigram_buckets: NotNegative = 1 << 18
    dropout: Dropout = 0.0
    initializer_range: Range = 0.05


@section
class NegativesConfig:
    """The model that finds hard negatives (appendix B).

    It uses the tokens of `tokenizer`; `encoder.max_positions` does not apply to it.
    """

    encoder: AveragingEncoderConfig = field(default_factory=AveragingEncoderConfig)


@section
class NegativesRun(Config):
    """The configuration of `labse mine-negatives`; `train` is that of the weaker encoder."""

    own_section = "train"
    negatives: NegativesConfig = field(default_factory=NegativesConfig)
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(
            batch_size=1024,
            steps=20_000,
            optimizer=OptimizerConfig(learning_rate=2e-3, warmup_steps=0.025),
        )
    )

    @model_validator(mode="after")
    def _check(self) -> NegativesRun:
        for name in ("dev", "evaluate"):
            nothing = not getattr(self.train, name)
            require(nothing, f"train.{name}", "empty: nothing is measured there")
        require_dims(
            self.train, self.negatives.encoder.hidden_size, "negatives.encoder.hidden_size"
        )
        return self
