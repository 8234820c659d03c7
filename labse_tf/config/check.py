"""Refuses configurations that no run can work with."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from operator import attrgetter

from labse_tf.config import (
    ACTIVATIONS,
    PRECISIONS,
    Config,
    ContrastiveConfig,
    NegativesConfig,
    OptimizerConfig,
    TrainConfig,
    flatten,
)
from labse_tf.errors import InputError

# Of each section its optimisers, and the steps that each of them makes.
_TRAINED = {
    "pretrain": {"pretrain.optimizer": "pretrain.stage_steps"},
    "train": {"train.optimizer": "train.steps"},
    "negatives": {"negatives.train.optimizer": "negatives.train.steps"},
    "contrastive": {
        "contrastive.noisy_optimizer": "contrastive.noisy_steps",
        "contrastive.trusted_optimizer": "contrastive.trusted_steps",
    },
}


def check(config: Config, *, path: str | os.PathLike[str] | None = None) -> None:
    """Refuses values that no run can work with.

    Raises:
      InputError: with the key's full name and the offending value.
    """
    encoder, pretrain, train = config.encoder, config.pretrain, config.train
    contrastive = config.contrastive
    longest = encoder.max_positions
    # What no one is going to use does not have to fit the encoder.
    pretrains = bool(pretrain.monolingual or pretrain.bitext)
    halvings = 2 ** (len(pretrain.stage_steps) - 1) if pretrain.stage_steps else 1
    requirements = [
        ("encoder.activation", encoder.activation in ACTIVATIONS, f"one of {ACTIVATIONS}"),
        ("compute.precision", config.compute.precision in PRECISIONS, f"one of {PRECISIONS}"),
        (
            "encoder.num_attention_heads",
            encoder.num_attention_heads > 0
            and encoder.hidden_size % encoder.num_attention_heads == 0,
            "a divisor of encoder.hidden_size",
        ),
        ("encoder.vocab_size", encoder.vocab_size >= 0, "0 or more"),
        ("encoder.hidden_size", encoder.hidden_size > 0, "1 or more"),
        ("encoder.intermediate_size", encoder.intermediate_size > 0, "1 or more"),
        ("encoder.initializer_range", encoder.initializer_range > 0, "more than 0"),
        ("tokenizer.max_bytes_per_word", config.tokenizer.max_bytes_per_word > 0, "1 or more"),
        ("encoder.num_layers", encoder.num_layers > 0, "1 or more"),
        ("encoder.dropout", 0.0 <= encoder.dropout < 1.0, "in [0, 1)"),
        (
            "pretrain.stage_steps",
            bool(pretrain.stage_steps) and min(pretrain.stage_steps) >= 0,
            "a list with an entry of 0 or more a stage",
        ),
        (
            "pretrain.stage_steps",
            encoder.num_layers % halvings == 0 or not pretrains,
            f"such that encoder.num_layers halves {len(pretrain.stage_steps) - 1} times",
        ),
        ("pretrain.batch_size", pretrain.batch_size > 0, "1 or more"),
        ("pretrain.tlm_fraction", 0.0 <= pretrain.tlm_fraction <= 1.0, "in [0, 1]"),
        ("pretrain.mask_fraction", 0.0 < pretrain.mask_fraction < 1.0, "in (0, 1)"),
        (
            "pretrain.sequence_length",
            8 <= pretrain.sequence_length <= longest or not pretrains,
            "from 8 to encoder.max_positions",
        ),
        ("pretrain.sampled_softmax", pretrain.sampled_softmax >= 0, "0 or more"),
        ("pretrain.held_out_size", pretrain.held_out_size > 0, "1 or more"),
        ("pretrain.held_out_interval", pretrain.held_out_interval > 0, "1 or more"),
        ("pretrain.max_predictions", pretrain.max_predictions > 0, "1 or more"),
        *_train_requirements("train", train),
        (
            "train.bucket_lengths",
            max(train.bucket_lengths, default=0) <= longest
            or not (train.bitext or config.distill.monolingual),
            "ascending, from 4 to encoder.max_positions",
        ),
        *_negatives_requirements(config.negatives),
        *_contrastive_requirements(contrastive),
    ]
    for part, name in (
        (pretrain, "pretrain"),
        (train, "train"),
        (config.negatives.train, "negatives.train"),
        (contrastive, "contrastive"),
    ):
        for key in ("log_interval", "checkpoint_interval", "checkpoints_kept"):
            requirements.append((f"{name}.loop.{key}", getattr(part.loop, key) > 0, "1 or more"))
    for name, optimizer in (
        ("pretrain.optimizer", pretrain.optimizer),
        ("train.optimizer", train.optimizer),
        ("negatives.train.optimizer", config.negatives.train.optimizer),
        ("contrastive.noisy_optimizer", contrastive.noisy_optimizer),
        ("contrastive.trusted_optimizer", contrastive.trusted_optimizer),
    ):
        requirements += _optimizer_requirements(name, optimizer)
    _refuse_unfulfilled(config, requirements, path)


def check_warmup(
    config: Config, section: str, *, path: str | os.PathLike[str] | None = None
) -> None:
    """Refuses a warm-up that leaves nothing to train, of the one section that a command trains by.

    Raises:
      InputError: with the key's full name and the offending value.
    """
    requirements = []
    for key, steps_key in _TRAINED[section].items():
        optimizer, steps = attrgetter(key, steps_key)(config)
        # Each stage of pre-training warms up anew.
        for run in filter(None, steps if isinstance(steps, list) else [steps]):
            fits = optimizer.warmup_of(run) < run
            wanted = f"fewer than the {run} steps to train, or a share of them: 0.1, say"
            requirements.append((f"{key}.warmup_steps", fits, wanted))
    _refuse_unfulfilled(config, requirements, path)


def _refuse_unfulfilled(config: Config, requirements, path) -> None:
    values = dict(flatten(dataclasses.asdict(config)))
    for key, fulfilled, wanted in requirements:
        if not fulfilled:
            raise InputError(
                f"'{key}' is {values[key]!r}", path=path, remedy=f"it must be {wanted}"
            )


def _optimizer_requirements(name: str, optimizer: OptimizerConfig) -> list[tuple[str, bool, str]]:
    warmup = optimizer.warmup_steps
    return [
        *(
            (f"{name}.{key}", getattr(optimizer, key) >= 0, "0 or more")
            for key in ("learning_rate", "warmup_steps", "weight_decay", "clip_norm")
        ),
        (f"{name}.warmup_steps", warmup < 1 or warmup == int(warmup), "whole, or a share below 1"),
    ]


def _train_requirements(name: str, train: TrainConfig) -> list[tuple[str, bool, str]]:
    return [
        (f"{name}.batch_size", train.batch_size > 1, "2 or more: the rest of it are the negatives"),
        (
            f"{name}.bucket_lengths",
            _ascending(train.bucket_lengths, least=4),
            "ascending, from 4",
        ),
        (f"{name}.chunk_size", train.chunk_size >= 0, "0 or more"),
        (f"{name}.steps", train.steps >= 0, "0 or more"),
        (f"{name}.scale", train.scale > 0, "more than 0"),
        (f"{name}.dev_size", train.dev_size > 1, "2 or more: the others are the wrong answers"),
        (f"{name}.dev_interval", train.dev_interval > 0, "1 or more"),
        (f"{name}.patience", train.patience >= 0, "0 or more"),
        (f"{name}.patience", not train.patience or bool(train.dev), f"0 without '{name}.dev'"),
        (f"{name}.hard_negatives", train.hard_negatives >= 0, "0 or more"),
    ]


def _negatives_requirements(negatives: NegativesConfig) -> list[tuple[str, bool, str]]:
    encoder = negatives.encoder
    return [
        *_train_requirements("negatives.train", negatives.train),
        ("negatives.train.dev", not negatives.train.dev, "empty: nothing is measured there"),
        ("negatives.encoder.hidden_size", encoder.hidden_size > 0, "1 or more"),
        ("negatives.encoder.num_layers", encoder.num_layers >= 0, "0 or more"),
        ("negatives.encoder.bigram_buckets", encoder.bigram_buckets >= 0, "0 or more"),
        ("negatives.encoder.dropout", 0.0 <= encoder.dropout < 1.0, "in [0, 1)"),
        ("negatives.encoder.initializer_range", encoder.initializer_range > 0, "more than 0"),
    ]


def _contrastive_requirements(contrastive: ContrastiveConfig) -> list[tuple[str, bool, str]]:
    translator = contrastive.translator
    requirements = [
        (
            "contrastive.translator.num_attention_heads",
            translator.num_attention_heads > 0
            and translator.hidden_size % translator.num_attention_heads == 0,
            "a divisor of contrastive.translator.hidden_size",
        ),
        (
            "contrastive.translator.hidden_size",
            translator.hidden_size > 0 and translator.hidden_size % 2 == 0,
            "even and more than 0",
        ),
        ("contrastive.translator.dropout", 0.0 <= translator.dropout < 1.0, "in [0, 1)"),
        # [CLS], the tag, two [SEP] and something of the text.
        (
            "contrastive.bucket_lengths",
            _ascending(contrastive.bucket_lengths, least=8),
            "ascending, from 8",
        ),
        ("contrastive.vocab_size", contrastive.vocab_size > 0, "1 or more"),
        ("contrastive.batch_size", contrastive.batch_size > 0, "1 or more"),
        ("contrastive.noisy_steps", contrastive.noisy_steps >= 0, "0 or more"),
        ("contrastive.trusted_steps", contrastive.trusted_steps >= 0, "0 or more"),
    ]
    for key in ("encoder_layers", "decoder_layers", "intermediate_size"):
        fulfilled = getattr(translator, key) > 0
        requirements.append((f"contrastive.translator.{key}", fulfilled, "1 or more"))
    return requirements


def _ascending(lengths: Sequence[int], *, least: int) -> bool:
    return bool(lengths) and sorted(set(lengths)) == list(lengths) and lengths[0] >= least
