"""Contrastive data selection: a translation model trained in two stages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labse_tf.config.optimizer import LoopConfig, OptimizerConfig, Run
from labse_tf.config.requirements import Requirement, at_least, buckets, dropout, heads


@dataclass
class TranslatorConfig:
    """A Transformer encoder-decoder with one vocabulary for both languages."""

    hidden_size: int = 512
    encoder_layers: int = 6
    decoder_layers: int = 6
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    dropout: float = 0.1

    def requirements(self, section: str) -> Iterator[Requirement]:
        yield heads(section, self)
        even = self.hidden_size > 0 and self.hidden_size % 2 == 0
        yield Requirement(f"{section}.hidden_size", even, "even and more than 0")
        yield dropout(section, self)
        names = ("encoder_layers", "decoder_layers", "intermediate_size")
        yield from at_least(1, section, self, *names)


@dataclass
class CdsConfig:
    """Contrastive data selection: `labse corpus train-cds`.

    A translator is trained for `noisy_steps` on the bitext in `noisy`, then tuned for
    `trusted_steps` on the bitext in `trusted`. `vocab_size` is the size of the vocabulary that is
    learned from both if none is given. `bucket_lengths` are as in TrainConfig and include the
    language tag of the source.
    """

    noisy: list[str] = field(default_factory=list)
    trusted: list[str] = field(default_factory=list)
    vocab_size: int = 32_000
    translator: TranslatorConfig = field(default_factory=TranslatorConfig)
    batch_size: int = 1024
    bucket_lengths: list[int] = field(default_factory=lambda: [16, 32, 64, 128])
    language_exponent: float = 1.0
    noisy_steps: int = 200_000
    trusted_steps: int = 5_000
    noisy_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(warmup_steps=0.05)
    )
    trusted_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=1e-4, warmup_steps=0.02)
    )
    loop: LoopConfig = field(default_factory=LoopConfig)

    def requirements(self, section: str) -> Iterator[Requirement]:
        # [CLS], the tag, two [SEP] and some text.
        yield buckets(section, self, least=8)
        yield from at_least(1, section, self, "vocab_size", "batch_size")
        yield from at_least(0, section, self, "noisy_steps", "trusted_steps")

    def runs(self, section: str) -> Iterator[Run]:
        yield Run(f"{section}.noisy_optimizer", self.noisy_optimizer, self.noisy_steps)
        yield Run(f"{section}.trusted_optimizer", self.trusted_optimizer, self.trusted_steps)
