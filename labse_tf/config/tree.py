"""The configuration of a run: one typed tree, filled from a YAML preset and `--set a.b=c`.

Section numbers refer to the LaBSE paper (arXiv 2007.01852). The presets are in `configs/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from labse_tf.config.cds import CdsConfig
from labse_tf.config.encoder import (
    BERT,
    OWN_NETWORKS,
    ComputeConfig,
    EncoderConfig,
    TokenizerConfig,
)
from labse_tf.config.laser import LaserConfig
from labse_tf.config.negatives import NegativesConfig
from labse_tf.config.nli import NliConfig
from labse_tf.config.pretrain import CMLM, PretrainConfig
from labse_tf.config.requirements import Requirement, within
from labse_tf.config.train import DistillConfig, TrainConfig


@dataclass
class Config:
    """The whole tree. An empty `languages` means all languages in the corpora."""

    seed: int = 42
    languages: list[str] = field(default_factory=list)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    pretrain: PretrainConfig = field(default_factory=PretrainConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    distill: DistillConfig = field(default_factory=DistillConfig)
    nli: NliConfig = field(default_factory=NliConfig)
    negatives: NegativesConfig = field(default_factory=NegativesConfig)
    cds: CdsConfig = field(default_factory=CdsConfig)
    laser: LaserConfig = field(default_factory=LaserConfig)

    def requirements(self) -> Iterator[Requirement]:
        """Yields requirements between sections, for the sections that will be used."""
        longest, pretrain, train = self.encoder.max_positions, self.pretrain, self.train
        known = self.encoder.network == BERT or not self.compute.rematerialize
        wanted = f"false: it is for 'encoder.network' {BERT!r}"
        yield Requirement("compute.rematerialize", known, wanted)
        if pretrain.corpora:
            halvings = max(0, len(pretrain.stage_steps) - 1)
            halves = self.encoder.num_layers % 2**halvings == 0
            wanted = f"such that encoder.num_layers can be halved {halvings} times"
            yield Requirement("pretrain.stage_steps", halves, wanted)
            # Slots have positions of their own, behind those of the tokens.
            slots = pretrain.slots if pretrain.objective == CMLM else 0
            fits = 8 <= pretrain.sequence_length <= longest - slots
            wanted = "from 8 to encoder.max_positions" + (" less pretrain.slots" if slots else "")
            yield Requirement("pretrain.sequence_length", fits, wanted)
        if train.joint and train.bitext:
            joint = pretrain.corpora and self.encoder.num_layers
            wanted = "false without corpora of 'pretrain' and layers"
            yield Requirement("train.joint", bool(joint), wanted)
            both = train.chunk_size or not pretrain.chunk_size
            wanted = "0 without 'train.chunk_size', as both tasks share a step"
            yield Requirement("pretrain.chunk_size", bool(both), wanted)
        if train.bitext or self.distill.monolingual:
            fits = max(train.bucket_lengths, default=0) <= longest
            wanted = "ascending, from 4 to encoder.max_positions"
            yield Requirement("train.bucket_lengths", fits, wanted)
            # What the width of another is, it alone knows.
            if self.encoder.network in OWN_NETWORKS:
                name = "encoder.hidden_size"
                yield within("train", train.matryoshka, self.encoder.hidden_size, name)
        if self.laser.corpora:
            fits = max(self.laser.bucket_lengths, default=0) <= longest
            wanted = "ascending, from 4 to encoder.max_positions"
            yield Requirement("laser.bucket_lengths", fits, wanted)
        if self.nli.corpora:
            fits = self.nli.sequence_length <= longest
            wanted = "at most encoder.max_positions"
            yield Requirement("nli.sequence_length", fits, wanted)


def flatten(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields `(full name, value)` for each key of a nested dict."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
