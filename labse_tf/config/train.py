"""The dual encoder, and distillation, which is trained in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labse_tf.config.optimizer import LoopConfig, OptimizerConfig, Run
from labse_tf.config.requirements import Requirement, at_least, buckets, more_than_0


@dataclass
class TrainConfig:
    """Dual-encoder training with additive margin softmax (equations 1 to 4, section 3.2).

    `batch_size` is the global batch (pairs over all replicas). A batch is padded to the smallest
    of `bucket_lengths` (tokens) that holds it; the last one is the maximum length. A replica
    embeds `chunk_size` pairs at a time (0: all at once), which changes memory and time alone.
    Without `global_negatives` a pair's negatives are those of its replica alone. With
    `mask_duplicates` pairs that share a text are not each other's negatives.
    `language_exponent` is as in PretrainConfig: 1 samples by size, 0 evenly. With
    `one_language_batches` a batch holds one language only, so that its negatives are harder.
    `evaluate` are tasks of `labse eval` to run at the same steps, as TASK=DIR. `best` names the one
    whose primary figure chooses the best checkpoint; empty: the dev pairs, or without these the
    first of `evaluate`.
    `dev` are corpora of pairs on which retrieval is measured, by language, every `dev_interval`
    steps and at the end: `dev_size` pairs of each language at most. The best checkpoint is kept.
    After `patience` measurements without a better one training stops; 0 never stops it.
    `hard_negatives` is the number of columns behind source and target that are read as wrong
    targets (appendix B); 0 reads none.
    """

    bitext: list[str] = field(default_factory=list)
    dev: list[str] = field(default_factory=list)
    dev_size: int = 500
    evaluate: list[str] = field(default_factory=list)
    best: str = ""
    dev_interval: int = 1000
    patience: int = 0
    batch_size: int = 4096
    chunk_size: int = 0
    bucket_lengths: list[int] = field(default_factory=lambda: [16, 32, 64, 128])
    global_negatives: bool = True
    mask_duplicates: bool = True
    margin: float = 0.3
    scale: float = 10.0
    steps: int = 50_000
    language_exponent: float = 1.0
    one_language_batches: bool = False
    hard_negatives: int = 0
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)

    def requirements(self, section: str) -> Iterator[Requirement]:
        wanted = "2 or more: the rest of it are the negatives"
        yield Requirement(f"{section}.batch_size", self.batch_size > 1, wanted)
        yield buckets(section, self, least=4)
        yield from at_least(0, section, self, "chunk_size", "steps", "patience", "hard_negatives")
        yield from at_least(1, section, self, "dev_interval")
        yield from more_than_0(section, self, "scale")
        wanted = "2 or more: the others are the wrong answers"
        yield Requirement(f"{section}.dev_size", self.dev_size > 1, wanted)
        measured = not self.patience or bool(self.dev or self.evaluate)
        wanted = f"0 without '{section}.dev' and '{section}.evaluate'"
        yield Requirement(f"{section}.patience", measured, wanted)
        named = all(0 < entry.find("=") < len(entry) - 1 for entry in self.evaluate)
        yield Requirement(f"{section}.evaluate", named, "a list of TASK=DIR")

    def runs(self, section: str) -> Iterator[Run]:
        yield Run(f"{section}.optimizer", self.optimizer, self.steps)


@dataclass
class DistillConfig:
    """Learning the vectors of another model (`labse distill`); `train` tells the rest.

    `teacher` is a model dir. `monolingual` are corpora of sentences that are learned from beside
    both sides of `train.bitext`; languages are sampled from all by `train.language_exponent`.
    """

    teacher: str = ""
    monolingual: list[str] = field(default_factory=list)
