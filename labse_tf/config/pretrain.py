"""Pre-training: MLM + TLM, or CMLM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labse_tf.config.optimizer import LoopConfig, OptimizerConfig, Run
from labse_tf.config.requirements import Requirement, at_least

MLM, CMLM = "mlm", "cmlm"


@dataclass
class PretrainConfig:
    """MLM + TLM, or CMLM, with progressive stacking (section 3.2). Lengths are tokens.

    `objective` is "mlm", with `monolingual` and `bitext`, or "cmlm", conditional masked language
    modelling (Yang et al. 2021, arXiv 2012.14388), with `neighbours`: corpora of sentences in the
    order of their documents. There, the masked tokens of a sentence are predicted from the rest of
    it and from `slots` vectors made of its neighbour's embedding, each sentence cut to
    `sequence_length`; with 0 slots, from the sentence alone.

    `stage_steps` has one entry per stage; the last stage has all layers of the encoder, each one
    before it half as many. With `language_exponent` s, language l is sampled in proportion to
    n_l ** s, where n_l is its number of texts or pairs.
    `sampled_softmax` is the number of tokens sampled for the softmax; 0 uses the whole vocabulary.
    The gradients of `chunk_size` sequences of a replica are computed at a time (0: of all), which
    affects only memory and time.
    A sequence of MLM is full: sentences of a language stand one after the other, and are cut where
    it ends. A sequence of TLM has one pair; with `pack_pairs`, as many whole ones as fit, of which
    each is encoded by itself. For sequences much longer than a pair.
    `input_parts` are as in TrainConfig.
    `held_out` are corpora on which loss and accuracy are measured, by language, every
    `held_out_interval` steps and at the end of a stage: `held_out_size` sentences or pairs each.
    """

    objective: str = MLM
    monolingual: list[str] = field(default_factory=list)
    bitext: list[str] = field(default_factory=list)
    neighbours: list[str] = field(default_factory=list)
    slots: int = 15
    sequence_length: int = 512
    batch_size: int = 8192
    chunk_size: int = 0
    tlm_fraction: float = 0.5
    pack_pairs: bool = False
    mask_fraction: float = 0.2
    max_predictions: int = 80
    sampled_softmax: int = 0
    held_out: list[str] = field(default_factory=list)
    held_out_size: int = 200
    held_out_interval: int = 10_000
    language_exponent: float = 1.0
    input_parts: int = 1
    stage_steps: list[int] = field(default_factory=lambda: [400_000, 800_000, 1_800_000])
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)

    @property
    def corpora(self) -> list[str]:
        """All corpora that the objective reads."""
        return self.neighbours if self.objective == CMLM else [*self.monolingual, *self.bitext]

    def requirements(self, section: str) -> Iterator[Requirement]:
        steps = self.stage_steps
        some = bool(steps) and min(steps) >= 0
        wanted = "a list with an entry of 0 or more per stage"
        yield Requirement(f"{section}.stage_steps", some, wanted)
        names = (
            "batch_size",
            "held_out_size",
            "held_out_interval",
            "max_predictions",
            "input_parts",
        )
        yield from at_least(1, section, self, *names)
        yield from at_least(0, section, self, "sampled_softmax", "slots", "chunk_size")
        known = self.objective in (MLM, CMLM)
        yield Requirement(f"{section}.objective", known, f"one of {(MLM, CMLM)}")
        yield Requirement(f"{section}.tlm_fraction", 0.0 <= self.tlm_fraction <= 1.0, "in [0, 1]")
        yield Requirement(f"{section}.mask_fraction", 0.0 < self.mask_fraction < 1.0, "in (0, 1)")

    def runs(self, section: str) -> Iterator[Run]:
        for steps in self.stage_steps:
            yield Run(f"{section}.optimizer", self.optimizer, steps)
