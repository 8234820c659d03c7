"""The configuration of `labse corpus train-cds`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pydantic import model_validator

from labse_tf.config import Config, LoopConfig, OptimizerConfig, Run, section
from labse_tf.config.sections import (
    Count,
    Dropout,
    NotNegative,
    require,
    require_buckets,
    require_heads,
)


@section
class TranslatorConfig:
    """A Transformer encoder-decoder with one vocabulary for both languages."""

    hidden_size: Count = 512
    encoder_layers: Count = 6
    decoder_layers: Count = 6
    num_attention_heads: int = 8
    intermediate_size: Count = 2048
    dropout: Dropout = 0.1

    @model_validator(mode="after")
    def _check(self) -> TranslatorConfig:
        require(self.hidden_size % 2 == 0, "hidden_size", "even and more than 0")
        require_heads(self.num_attention_heads, self.hidden_size)
        return self


@section
class CdsConfig:
    """Contrastive data selection: `labse corpus train-cds`.

    A translator is trained for `noisy_steps` on the bitext in `noisy`, then tuned for
    `trusted_steps` on the bitext in `trusted`. `vocab_size` is the size of the vocabulary that is
    learned from both if none is given. `bucket_lengths` are as in TrainConfig and include the
    language tag of the source.
    """

    noisy: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    vocab_size: Count = 32_000
    translator: TranslatorConfig = field(default_factory=TranslatorConfig)
    batch_size: Count = 1024
    bucket_lengths: list[int] = field(default_factory=lambda: [16, 32, 64, 128])
    language_exponent: float = 1.0
    noisy_steps: NotNegative = 200_000
    trusted_steps: NotNegative = 5_000
    noisy_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(warmup_steps=0.05)
    )
    trusted_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=1e-4, warmup_steps=0.02)
    )
    loop: LoopConfig = field(default_factory=LoopConfig)

    @model_validator(mode="after")
    def _check(self) -> CdsConfig:
        # [CLS], the tag, two [SEP] and some text.
        require_buckets(self.bucket_lengths, least=8)
        return self


@section
class CdsRun(Config):
    """The configuration of `labse corpus train-cds`."""

    own_section = "cds"
    cds: CdsConfig = field(default_factory=CdsConfig)

    def runs(self) -> Iterator[Run]:
        for name in ("noisy", "trusted"):
            key = f"{name}_optimizer"
            yield Run(f"cds.{key}", getattr(self.cds, key), getattr(self.cds, f"{name}_steps"))
