"""The model that finds hard negatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labse_tf.config.optimizer import OptimizerConfig, Run
from labse_tf.config.requirements import Requirement, at_least, dropout, more_than_0, within
from labse_tf.config.train import TrainConfig


@dataclass
class AveragingEncoderConfig:
    """A deep averaging network: the weaker encoder that finds hard negatives.

    Bigrams of tokens are hashed to `bigram_buckets` embedding rows; with 0, bigrams are not used.
    """

    hidden_size: int = 256
    num_layers: int = 2
    bigram_buckets: int = 1 << 18
    dropout: float = 0.0
    initializer_range: float = 0.05

    def requirements(self, section: str) -> Iterator[Requirement]:
        yield from at_least(1, section, self, "hidden_size")
        yield from at_least(0, section, self, "num_layers", "bigram_buckets")
        yield dropout(section, self)
        yield from more_than_0(section, self, "initializer_range")


@dataclass
class NegativesConfig:
    """The model of `labse mine-negatives`, which finds hard negatives (appendix B).

    It uses the tokens of `tokenizer`; `encoder.max_positions` does not apply to it.
    """

    encoder: AveragingEncoderConfig = field(default_factory=AveragingEncoderConfig)
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(
            batch_size=1024,
            steps=20_000,
            optimizer=OptimizerConfig(learning_rate=2e-3, warmup_steps=0.025),
        )
    )

    def requirements(self, section: str) -> Iterator[Requirement]:
        for name in ("dev", "evaluate"):
            nothing = not getattr(self.train, name)
            yield Requirement(
                f"{section}.train.{name}", nothing, "empty: nothing is measured there"
            )
        name = f"{section}.encoder.hidden_size"
        yield within(f"{section}.train", self.train.matryoshka, self.encoder.hidden_size, name)

    def runs(self, section: str) -> Iterator[Run]:
        yield from self.train.runs(f"{section}.train")
