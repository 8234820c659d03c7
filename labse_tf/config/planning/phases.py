"""What a configuration trains, stage by stage: how many rows of how many tokens, and which."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from labse_tf.config import BERT, CMLM, EncoderConfig, OptimizerConfig, TrainRun
from labse_tf.config.shares import check_chunks, check_even
from labse_tf.errors import InputError

PRETRAIN, TRAIN = "pretrain", "train"
SECTIONS = (PRETRAIN, TRAIN)


@dataclass(frozen=True)
class Phase:
    """A stage of training, as one replica sees it.

    Attributes:
      name: for people.
      section: of the configuration, PRETRAIN or TRAIN.
      encoder: its sizes; the vocabulary's is known.
      layers: how many it has in this stage.
      optimizer: its settings.
      steps: of the stage.
      batch: texts or pairs of the global batch.
      local: those of a replica.
      sides: sequences of a text or pair.
      length: tokens of a sequence, at most.
      chunk: texts or pairs whose activations are held at once; 0 holds all.
      rematerialized: whether layers keep only their inputs for the backward pass.
      predicted: tokens of a text that are predicted; 0 in the dual encoder.
      candidates: tokens in the softmax; 0 in the dual encoder.
      lazy: whether a step touches only the rows of the table that its batch reads.
    """

    name: str
    section: str
    encoder: EncoderConfig
    layers: int
    optimizer: OptimizerConfig
    steps: int
    batch: int
    local: int
    sides: int
    length: int
    chunk: int = 0
    rematerialized: bool = False
    predicted: int = 0
    candidates: int = 0
    lazy: bool = True

    @property
    def tokens(self) -> int:
        """Tokens that a replica encodes in a step, padding included."""
        return self.local * self.sides * self.length

    @property
    def tokens_at_once(self) -> int:
        """Of these, those whose activations are held at once."""
        return (self.chunk or self.local) * self.sides * self.length

    @property
    def masked(self) -> int:
        """Tokens of a replica that are predicted in a step."""
        return self.local * self.predicted

    @property
    def masked_at_once(self) -> int:
        """Of these, those whose logits are held at once."""
        return (self.chunk or self.local) * self.predicted

    @property
    def forward_passes(self) -> int:
        """How often a step computes the layers, other than backwards."""
        cached = bool(self.chunk) and self.section == TRAIN
        return 1 + cached + self.rematerialized


def find_phases(config: TrainRun, *, replicas: int, on_tpu: bool, sections=SECTIONS) -> list[Phase]:
    """Returns the stages that `labse pretrain` and `labse train` train with this configuration.

    Args:
      config: with `encoder.vocab_size`.
      replicas: that share the global batch.
      on_tpu: where updates of the table are dense.
      sections: which of SECTIONS.

    Raises:
      InputError: for an encoder that is no BERT or has subwords, joint training, or a batch that
        the replicas or chunks cannot share.
    """
    if config.encoder.network != BERT:
        raise InputError(
            f"'encoder.network' is {config.encoder.network!r}, whose cost is not known",
            remedy="plan an encoder of the network 'bert'",
        )
    if config.encoder.has_parts:
        raise InputError(
            "tokens' vectors are sums of rows, whose number is not known without a vocabulary",
            remedy="plan with --set encoder.subwords=[] --set encoder.ngrams=[]",
        )
    if config.train.joint:
        raise InputError(
            "'train.joint' is true, whose cost is not known",
            remedy="plan with --set train.joint=false, and add that of its pre-training",
        )
    phases: list[Phase] = []
    if PRETRAIN in sections and config.encoder.num_layers:
        phases += _pretraining(config, replicas, on_tpu)
    if TRAIN in sections:
        phases.append(_training(config, replicas, on_tpu))
    return phases


def _pretraining(config: TrainRun, replicas: int, on_tpu: bool) -> Iterator[Phase]:
    settings = config.pretrain
    check_even(settings.batch_size, replicas)
    local = settings.batch_size // replicas
    check_chunks(local, settings.chunk_size)
    stages = len(settings.stage_steps)
    for number, steps in enumerate(settings.stage_steps):
        layers = max(1, config.encoder.num_layers >> (stages - 1 - number))
        most = math.ceil(settings.mask_fraction * settings.sequence_length)
        yield Phase(
            name=f"pretrain, stage {number + 1} of {stages}" if stages > 1 else "pretrain",
            section=PRETRAIN,
            encoder=config.encoder,
            layers=layers,
            optimizer=settings.optimizer,
            steps=steps,
            batch=settings.batch_size,
            local=local,
            # CMLM encodes a sentence and, beside its slots, its neighbour.
            sides=2 if settings.objective == CMLM else 1,
            length=settings.sequence_length,
            chunk=settings.chunk_size,
            rematerialized=config.compute.rematerialize,
            predicted=min(most, settings.max_predictions),
            candidates=settings.sampled_softmax or config.encoder.vocab_size,
            lazy=settings.optimizer.lazy_embeddings
            and bool(settings.sampled_softmax)
            and not on_tpu,
        )


def _training(config: TrainRun, replicas: int, on_tpu: bool) -> Phase:
    settings = config.train
    check_even(settings.batch_size, replicas)
    local = settings.batch_size // replicas
    check_chunks(local, settings.chunk_size)
    return Phase(
        name="train",
        section=TRAIN,
        encoder=config.encoder,
        layers=config.encoder.num_layers,
        optimizer=settings.optimizer,
        steps=settings.steps,
        batch=settings.batch_size,
        local=local,
        sides=2 + settings.hard_negatives,
        length=settings.bucket_lengths[-1],
        chunk=settings.chunk_size,
        rematerialized=config.compute.rematerialize,
        lazy=settings.optimizer.lazy_embeddings and not on_tpu,
    )
