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
    embeds `chunk_size` pairs at a time (0: all at once), which affects only memory and time.
    Without `global_negatives`, a pair's negatives come from its own replica only. With
    `mask_duplicates`, pairs that share a text are not each other's negatives.
    `language_exponent` is as in PretrainConfig: 1 samples by size, 0 evenly. With
    `one_language_batches`, a batch holds one language only, which makes its negatives harder.
    `replay` are corpora of languages that the model is not to forget: `replay_share` of all pairs
    are drawn from these, by the same exponent; languages of `bitext` are left out of them.
    `dev` are corpora of pairs on which retrieval is measured, by language, every `dev_interval`
    steps and at the end, on at most `dev_size` pairs per language. The best checkpoint is kept.
    `evaluate` are `labse eval` tasks to run at the same steps, as TASK=DIR. `best` names the task
    whose primary metric selects the best checkpoint; if empty, the dev pairs select it, or without
    dev pairs the first task of `evaluate`.
    Training stops after `patience` measurements without improvement; 0 disables early stopping.
    With `joint`, each step also trains the objective of `pretrain` on a batch of its corpora: the
    loss is that of the masked tokens plus `bitext_weight` times that of the pairs (Yang et al.
    2021, arXiv 2012.14388, section 3.2).
    With `cache_tokens`, all pairs are tokenised first and stay in memory, 4 bytes a token: for
    corpora that fit and are passed over often.
    A batch is made of `input_parts` equal parts, each of which has files of its own, or of a
    language with fewer files each so manieth pair. Of several workers, each reads its share of the
    parts; with 1, each reads everything and keeps its replicas' rows.
    `hard_negatives` is the number of columns after source and target that are read as wrong
    targets (appendix B); 0 reads none.
    `matryoshka` are dimensions below the encoder's own, descending, such as [128, 64]: the first so
    many columns of a vector, scaled to unit length, are trained to be vectors too (Kusupati et al.
    2022, arXiv 2205.13147). The encoder's own dimension always counts; naming it changes nothing.
    """

    bitext: list[str] = field(default_factory=list)
    replay: list[str] = field(default_factory=list)
    replay_share: float = 0.5
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
    matryoshka: list[int] = field(default_factory=list)
    joint: bool = False
    bitext_weight: float = 0.2
    cache_tokens: bool = False
    input_parts: int = 1
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)

    def requirements(self, section: str) -> Iterator[Requirement]:
        wanted = "2 or more: the other pairs are the negatives"
        yield Requirement(f"{section}.batch_size", self.batch_size > 1, wanted)
        yield buckets(section, self, least=4)
        yield from more_than_0(section, self, "bitext_weight")
        yield from at_least(0, section, self, "chunk_size", "steps", "patience", "hard_negatives")
        yield from at_least(1, section, self, "dev_interval", "input_parts")
        alone = self.input_parts == 1 or not self.cache_tokens
        yield Requirement(f"{section}.input_parts", alone, f"1 with '{section}.cache_tokens'")
        yield from more_than_0(section, self, "scale")
        share = 0 < self.replay_share < 1
        yield Requirement(f"{section}.replay_share", share, "more than 0 and less than 1")
        wanted = "2 or more: the other pairs are the wrong answers"
        yield Requirement(f"{section}.dev_size", self.dev_size > 1, wanted)
        measured = not self.patience or bool(self.dev or self.evaluate)
        wanted = f"0 without '{section}.dev' and '{section}.evaluate'"
        yield Requirement(f"{section}.patience", measured, wanted)
        named = all(0 < entry.find("=") < len(entry) - 1 for entry in self.evaluate)
        yield Requirement(f"{section}.evaluate", named, "a list of TASK=DIR")
        dims = self.matryoshka
        descending = sorted({dim for dim in dims if dim > 0}, reverse=True) == dims
        yield Requirement(f"{section}.matryoshka", descending, "descending, each 1 or more")

    def runs(self, section: str) -> Iterator[Run]:
        yield Run(f"{section}.optimizer", self.optimizer, self.steps)

    def dims(self, width: int) -> list[int]:
        """Returns the dimensions that are trained: `width`, the vectors' own, and `matryoshka`."""
        return [width, *(dim for dim in self.matryoshka if dim != width)]


@dataclass
class DistillConfig:
    """Training on the vectors of another model (`labse distill`); `train` has the other settings.

    `teacher` is a model dir. `monolingual` are corpora of sentences used in addition to both sides
    of `train.bitext`; languages are sampled over all of them by `train.language_exponent`.
    """

    teacher: str = ""
    monolingual: list[str] = field(default_factory=list)
