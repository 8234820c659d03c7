"""LASER: an encoder trained by translation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labse_tf.config.optimizer import LoopConfig, OptimizerConfig, Run
from labse_tf.config.requirements import Requirement, at_least, buckets, more_than_0
from labse_tf.languages import find_code


@dataclass
class LaserConfig:
    """Translation through a sentence vector (Artetxe and Schwenk, arXiv 1812.10464, section 3).

    `bitext` are corpora of pairs with English. If "en" is among `targets`, all of their languages
    are translated into English; English is translated into each other target. `target_bitext` are
    corpora in which another target stands in the place of English, as LANGUAGE=PATH: with "es=DIR",
    DIR/fr.tsv has Spanish, then French, and French is translated into Spanish. With one target
    alone, its own sentences would be the source of nothing.

    A batch has as many pairs as `batch_tokens` hold, on one side, padding included; they are of one
    of `bucket_lengths` (tokens, special ones included; the last one is the maximum length).
    `language_exponent` is as in PretrainConfig, over pairs of languages.

    The decoder is an LSTM of `decoder_size` units. `language_size` is the width of a target
    language's vector, `output_size` of the layer below the softmax. Its weights begin uniform
    within plus and minus `initializer_range`, that of LASER's code. `sampled_softmax` is as in
    PretrainConfig: 0 is the whole vocabulary.

    The loss on the first `held_out_size` pairs of `held_out` (as `bitext`) and of
    `target_held_out` (as `target_bitext`), for each pair of languages, is measured every
    `held_out_interval` steps and at the end; the best checkpoint is kept.
    """

    bitext: list[str] = field(default_factory=list)
    target_bitext: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=lambda: ["en", "es"])
    batch_tokens: int = 128_000
    bucket_lengths: list[int] = field(default_factory=lambda: [8, 16, 24, 32, 48, 64, 96, 128])
    language_exponent: float = 1.0
    decoder_size: int = 2048
    language_size: int = 32
    output_size: int = 512
    initializer_range: float = 0.1
    sampled_softmax: int = 0
    held_out: list[str] = field(default_factory=list)
    target_held_out: list[str] = field(default_factory=list)
    held_out_size: int = 200
    held_out_interval: int = 5000
    steps: int = 100_000
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(
            warmup_steps=0, decay="constant", weight_decay=0.0, clip_norm=5.0
        )
    )
    loop: LoopConfig = field(default_factory=LoopConfig)

    def requirements(self, section: str) -> Iterator[Requirement]:
        known = all(find_code(code) == code for code in self.targets)
        several = len(set(self.targets)) == len(self.targets) > 1
        wanted = "two or more different codes of languages"
        yield Requirement(f"{section}.targets", known and several, wanted)
        for name in ("target_bitext", "target_held_out"):
            parts = [entry.partition("=") for entry in getattr(self, name)]
            fits = all(code in self.targets and path for code, _, path in parts)
            wanted = f"a list of LANGUAGE=PATH, each language one of {section}.targets"
            yield Requirement(f"{section}.{name}", fits, wanted)
        yield buckets(section, self, least=4)
        longest = max(self.bucket_lengths, default=1)
        wanted = f"{longest} or more, the longest of {section}.bucket_lengths"
        yield Requirement(f"{section}.batch_tokens", self.batch_tokens >= longest, wanted)
        names = ("decoder_size", "language_size", "output_size", "held_out_interval")
        yield from at_least(1, section, self, *names, "held_out_size")
        yield from at_least(0, section, self, "steps", "sampled_softmax", "language_exponent")
        yield from more_than_0(section, self, "initializer_range")

    def runs(self, section: str) -> Iterator[Run]:
        yield Run(f"{section}.optimizer", self.optimizer, self.steps)

    @property
    def corpora(self) -> list[str]:
        """All training corpora."""
        return [*self.bitext, *(entry.partition("=")[2] for entry in self.target_bitext)]
