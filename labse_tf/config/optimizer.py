"""Optimiser and training loop settings, used in every section that trains."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from labse_tf.config.requirements import Requirement, at_least, more_than_0

ADAGRAD = "adagrad"
TABLE_UPDATES = ("adamw", ADAGRAD)
CONSTANT = "constant"
DECAYS = ("linear", CONSTANT)


@dataclass
class OptimizerConfig:
    """AdamW with linear warm-up; a `clip_norm` of 0 disables clipping.

    `decay` is "linear", to 0 at the last step, or "constant": after the warm-up the rate stays.
    `warmup_steps` is the number of steps until the rate reaches `learning_rate`; below 1 it is a
    fraction of the run's steps (of the stage's, if there are stages).

    `table_rate`, `layer_rate` and `pooler_rate` multiply the rate of the embedding table, of
    everything else, and of the pooler. Each layer has `depth_rate` times the rate of the layer
    above it.

    With `lazy_embeddings`, a step updates only the rows of the embedding table that occur in its
    batch; the others catch up when they are next read. Large vocabularies need this on CPU and GPU.

    `table_update` is "adamw", or "adagrad" with one accumulator per row of the embedding table. The
    latter suits encoders without layers, takes a third of the memory, and wants a rate some 10
    times as high (`table_rate`, if there are layers too). It has no weight decay.
    """

    learning_rate: float = 1e-3
    warmup_steps: float = 0.1
    decay: str = "linear"
    weight_decay: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.999
    clip_norm: float = 1.0
    lazy_embeddings: bool = True
    table_update: str = "adamw"
    table_rate: float = 1.0
    layer_rate: float = 1.0
    pooler_rate: float = 1.0
    depth_rate: float = 1.0

    def warmup_of(self, steps: int) -> int:
        """Returns the steps of warm-up in a run of `steps` steps."""
        share = self.warmup_steps < 1
        return int(self.warmup_steps * steps) if share else int(self.warmup_steps)

    def requirements(self, section: str) -> Iterator[Requirement]:
        names = ("learning_rate", "warmup_steps", "weight_decay", "clip_norm", "table_rate")
        names += ("layer_rate", "pooler_rate")
        yield from at_least(0, section, self, *names)
        yield from more_than_0(section, self, "depth_rate")
        known = self.table_update in TABLE_UPDATES
        yield Requirement(f"{section}.table_update", known, f"one of {TABLE_UPDATES}")
        yield Requirement(f"{section}.decay", self.decay in DECAYS, f"one of {DECAYS}")
        whole = self.warmup_steps < 1 or self.warmup_steps == int(self.warmup_steps)
        yield Requirement(f"{section}.warmup_steps", whole, "a whole number, or a fraction below 1")


@dataclass
class LoopConfig:
    """Steps between log lines, steps between checkpoints, number of checkpoints kept."""

    log_interval: int = 100
    checkpoint_interval: int = 1000
    checkpoints_kept: int = 2

    def requirements(self, section: str) -> Iterator[Requirement]:
        names = ("log_interval", "checkpoint_interval", "checkpoints_kept")
        yield from at_least(1, section, self, *names)


class Run(NamedTuple):
    """One optimiser run of a section: the key of its settings, the settings, the steps."""

    key: str
    optimizer: OptimizerConfig
    steps: int
