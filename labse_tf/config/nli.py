"""Fine-tuning on natural language inference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labse_tf.config.optimizer import LoopConfig, OptimizerConfig, Run
from labse_tf.config.requirements import Requirement, at_least


@dataclass
class NliConfig:
    """Natural language inference (Yang et al. 2021, arXiv 2012.14388, section 3.3).

    `corpora` and `dev` are folders, files or globs of `[NAME.]<lang>.tsv`: premise, hypothesis and
    label. The files of one entry have the same pairs on the same lines, in different languages;
    each time that a pair is drawn, its premise and hypothesis are in two of them. A label of `-` in
    any language leaves a pair out. `sequence_length` is the tokens of each sentence. With
    `train_encoder` false, only the classifier is trained. Accuracy on `dev` is measured every
    `dev_interval` steps and at the end; the best checkpoint is kept.
    """

    corpora: list[str] = field(default_factory=list)
    dev: list[str] = field(default_factory=list)
    dev_interval: int = 500
    sequence_length: int = 128
    batch_size: int = 64
    steps: int = 5000
    train_encoder: bool = True
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=5e-5))
    loop: LoopConfig = field(default_factory=LoopConfig)

    def requirements(self, section: str) -> Iterator[Requirement]:
        yield from at_least(1, section, self, "batch_size", "dev_interval")
        yield from at_least(0, section, self, "steps")
        yield from at_least(4, section, self, "sequence_length")

    def runs(self, section: str) -> Iterator[Run]:
        yield Run(f"{section}.optimizer", self.optimizer, self.steps)
