"""The configuration of a run: one typed tree, filled from a YAML preset and `--set a.b=c`.

Section numbers refer to the LaBSE paper (arXiv 2007.01852). The presets lie in `configs/`.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

from labse_tf.errors import InputError
from labse_tf.languages import require_code

ACTIVATIONS = ("gelu_tanh", "gelu")
PRECISIONS = ("float32", "bfloat16")


@dataclass
class TokenizerConfig:
    """The vocabulary, and the longest word (bytes) that is split rather than made [UNK]."""

    vocab_file: str = ""
    max_bytes_per_word: int = 600


@dataclass
class EncoderConfig:
    """The transformer. A `vocab_size` of 0 stands for the number of tokens in the vocabulary."""

    vocab_size: int = 0
    hidden_size: int = 768
    num_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    dropout: float = 0.1
    activation: str = "gelu_tanh"
    initializer_range: float = 0.02


@dataclass
class ComputeConfig:
    """How the encoder computes while it is trained.

    `precision` is of activations and matrix products; weights, losses and updates are float32.
    `xla` compiles each layer (on TPUs all is compiled, whatever it says).
    """

    precision: str = "float32"
    xla: bool = False


@dataclass
class OptimizerConfig:
    """AdamW with linear warm-up and linear decay to 0; a `clip_norm` of 0 clips nothing.

    With `lazy_embeddings` a step updates the rows of the embedding table that its batch holds, and
    the others make up for it when they are next read: what large vocabularies need on CPU and GPU.
    """

    learning_rate: float = 1e-3
    warmup_steps: int = 10_000
    weight_decay: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.999
    clip_norm: float = 1.0
    lazy_embeddings: bool = True


@dataclass
class LoopConfig:
    """Steps between two log lines, steps between two checkpoints, checkpoints kept."""

    log_interval: int = 100
    checkpoint_interval: int = 1000
    checkpoints_kept: int = 2


@dataclass
class PretrainConfig:
    """MLM + TLM with progressive stacking (sections 2.2, 3.4). Lengths are tokens.

    `stage_steps` has an entry a stage; the last stage has all layers of the encoder, each one
    before it half as many. `language_exponent` s samples language l in proportion to size_l ** s.
    `sampled_softmax` is the number of tokens drawn for the softmax; 0 takes the whole vocabulary.
    `held_out` are corpora to measure loss and accuracy on, by language, every `held_out_interval`
    steps and at the end of a stage: `held_out_size` sentences or pairs of each language.
    """

    monolingual: list[str] = field(default_factory=list)
    bitext: list[str] = field(default_factory=list)
    sequence_length: int = 512
    batch_size: int = 8192
    tlm_fraction: float = 0.5
    mask_fraction: float = 0.2
    max_predictions: int = 80
    sampled_softmax: int = 0
    held_out: list[str] = field(default_factory=list)
    held_out_size: int = 200
    held_out_interval: int = 10_000
    language_exponent: float = 1.0
    stage_steps: list[int] = field(default_factory=lambda: [400_000, 800_000, 1_800_000])
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)


@dataclass
class TrainConfig:
    """Dual-encoder training with additive margin softmax (sections 2, 2.1, 3.2).

    `batch_size` is the global batch (pairs over all replicas). A batch is padded to the smallest
    of `bucket_lengths` (tokens) that holds it; the last one is the maximum length. A replica
    embeds `chunk_size` pairs at a time (0: all at once), which changes memory and time alone.
    With `mask_duplicates` pairs that share a text are not each other's negatives.
    `language_exponent` is as in PretrainConfig: 1 samples by size, 0 evenly. With
    `one_language_batches` a batch holds one language only, so that its negatives are harder.
    `dev` are corpora of pairs on which retrieval is measured, by language, every `dev_interval`
    steps and at the end: `dev_size` pairs of each language at most. The best checkpoint is kept.
    After `patience` measurements without a better one training stops; 0 never stops it.
    `hard_negatives` is the number of columns behind source and target that are read as wrong
    targets (appendix B); 0 reads none.
    """

    bitext: list[str] = field(default_factory=list)
    dev: list[str] = field(default_factory=list)
    dev_size: int = 500
    dev_interval: int = 1000
    patience: int = 0
    batch_size: int = 4096
    chunk_size: int = 0
    bucket_lengths: list[int] = field(default_factory=lambda: [16, 32, 64, 128])
    mask_duplicates: bool = True
    margin: float = 0.3
    scale: float = 10.0
    steps: int = 50_000
    language_exponent: float = 1.0
    one_language_batches: bool = False
    hard_negatives: int = 0
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)


@dataclass
class AveragingEncoderConfig:
    """A deep averaging network: the weaker encoder that finds hard negatives.

    `bigram_buckets` are the rows that pairs of neighbouring tokens are hashed to; 0 has no bigrams.
    """

    hidden_size: int = 256
    num_layers: int = 2
    bigram_buckets: int = 1 << 18
    dropout: float = 0.0
    initializer_range: float = 0.05


@dataclass
class NegativesConfig:
    """The model that finds hard negatives (appendix B), `labse mine-negatives`, and its training.

    Its tokens are those of `tokenizer`; `encoder.max_positions` does not bind it.
    """

    encoder: AveragingEncoderConfig = field(default_factory=AveragingEncoderConfig)
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(
            batch_size=1024,
            steps=20_000,
            optimizer=OptimizerConfig(learning_rate=2e-3, warmup_steps=500),
        )
    )


@dataclass
class TranslatorConfig:
    """A Transformer encoder-decoder whose vocabulary both languages share."""

    hidden_size: int = 512
    encoder_layers: int = 6
    decoder_layers: int = 6
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    dropout: float = 0.1


@dataclass
class ContrastiveConfig:
    """Contrastive data selection: `labse corpus train-cds`.

    A translator is trained for `noisy_steps` on the bitext in `noisy`, then tuned for
    `trusted_steps` on that in `trusted`. `vocab_size` is of the vocabulary that is learned from
    both if none is given. `bucket_lengths` are as in TrainConfig; the source begins with its tag.
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
    noisy_optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    trusted_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=1e-4, warmup_steps=100)
    )
    loop: LoopConfig = field(default_factory=LoopConfig)


@dataclass
class Config:
    """The whole tree. An empty `languages` stands for all that the corpora hold."""

    seed: int = 42
    languages: list[str] = field(default_factory=list)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    compute: ComputeConfig = field(default_factory=ComputeConfig)
    pretrain: PretrainConfig = field(default_factory=PretrainConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    negatives: NegativesConfig = field(default_factory=NegativesConfig)
    contrastive: ContrastiveConfig = field(default_factory=ContrastiveConfig)


def load_config(path: str | os.PathLike[str] | None, overrides: Sequence[str] = ()) -> Config:
    """Reads a YAML file, if one is given, over the defaults, then applies `a.b=c` overrides.

    Raises:
      InputError: for a missing or malformed file, a key that does not exist (names the nearest one
        that does), a value of the wrong type or out of range.
    """
    tree = OmegaConf.structured(Config)
    if path is not None:
        tree = _merge(tree, _read_yaml(path), path=path)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise InputError(f"--set {override} has no '='", remedy="write --set key=value")
        try:
            parsed = yaml.load(value, _Loader) if value else ""  # YAML would say null.
        except yaml.YAMLError as error:
            raise InputError(
                f"--set {key}: '{value}' is no YAML value", remedy="quote it"
            ) from error
        nested: Any = parsed
        for part in reversed(key.strip().split(".")):
            nested = {part: nested}
        tree = _merge(tree, nested, path=f"--set {key}")
    try:
        config = OmegaConf.to_object(tree)
    except OmegaConfBaseException as error:
        raise InputError(
            f"'{error.full_key}' cannot be resolved ({error.msg})",
            path=path,
            remedy="write values without ${...}",
        ) from error
    config.languages = [require_code(code, path=path) for code in config.languages]
    check(config, path=path)
    return config


def save_config(config: Config, path: str | os.PathLike[str]) -> None:
    """Writes the complete tree as YAML."""
    OmegaConf.save(OmegaConf.structured(config), path)


def differences(one: Config, other: Config) -> list[str]:
    """Returns the full names of the keys in which two configurations differ."""
    left, right = (dict(_flatten(dataclasses.asdict(config))) for config in (one, other))
    return sorted(key for key in left if left[key] != right[key])


class _Loader(yaml.SafeLoader):
    """YAML in which `no` is Norwegian: only `true` and `false` are truth values."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile("^(?:true|false)$"), list("tf"))


def _read_yaml(path: str | os.PathLike[str]) -> dict[str, Any]:
    if not os.path.isfile(path):
        raise InputError("no such configuration", path=path, remedy="see the presets in configs/")
    with open(path, encoding="utf-8") as file:
        try:
            tree = yaml.load(file, _Loader)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            mark = getattr(error, "problem_mark", None)
            raise InputError(
                f"is no YAML ({getattr(error, 'problem', None) or 'not UTF-8'})",
                path=path,
                line=mark.line + 1 if mark else None,
                remedy="mend the syntax",
            ) from error
    if not isinstance(tree, dict):
        raise InputError("holds no keys", path=path, remedy="see the presets in configs/")
    return tree


def _merge(tree, values: dict[str, Any], *, path: str | os.PathLike[str]):
    # A key at a time, so that the error can name its full path.
    for key, value in _flatten(values):
        nested: Any = value
        for part in reversed(key.split(".")):
            nested = {part: nested}
        try:
            tree = OmegaConf.merge(tree, nested)
        except ConfigKeyError as error:
            raise InputError(
                f"there is no key '{key}'", path=path, remedy=f"nearest: {_nearest_key(key)}"
            ) from error
        except OmegaConfBaseException as error:
            raise InputError(
                f"'{key}' cannot be {value!r}",
                path=path,
                remedy=f"it takes {_expected_type(key)}",
            ) from error
    return tree


def _flatten(tree: dict[str, Any], prefix: str = ""):
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _defaults() -> dict[str, Any]:
    return dict(_flatten(dataclasses.asdict(Config())))


def _nearest_key(key: str) -> str:
    known = list(_defaults())
    # A right last part in the wrong place says more than similar letters.
    same_end = [other for other in known if other.split(".")[-1] == key.split(".")[-1]]
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
    return (difflib.get_close_matches(key, same_end, n=1, cutoff=0.0) or near)[0]


def _expected_type(key: str) -> str:
    default = _defaults().get(key)
    names = {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "a text",
        list: "a list",
    }
    return names.get(type(default), "a group of keys")


def check(config: Config, *, path: str | os.PathLike[str] | None = None) -> None:
    """Refuses values that no run can work with.

    Raises:
      InputError: with the key's full name and the offending value.
    """
    encoder, pretrain, train = config.encoder, config.pretrain, config.train
    contrastive = config.contrastive
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
            encoder.num_layers % halvings == 0,
            f"such that encoder.num_layers halves {len(pretrain.stage_steps) - 1} times",
        ),
        ("pretrain.batch_size", pretrain.batch_size > 0, "1 or more"),
        ("pretrain.tlm_fraction", 0.0 <= pretrain.tlm_fraction <= 1.0, "in [0, 1]"),
        ("pretrain.mask_fraction", 0.0 < pretrain.mask_fraction < 1.0, "in (0, 1)"),
        (
            "pretrain.sequence_length",
            8 <= pretrain.sequence_length <= encoder.max_positions,
            "from 8 to encoder.max_positions",
        ),
        ("pretrain.sampled_softmax", pretrain.sampled_softmax >= 0, "0 or more"),
        ("pretrain.held_out_size", pretrain.held_out_size > 0, "1 or more"),
        ("pretrain.held_out_interval", pretrain.held_out_interval > 0, "1 or more"),
        ("pretrain.max_predictions", pretrain.max_predictions > 0, "1 or more"),
        *_train_requirements("train", train),
        (
            "train.bucket_lengths",
            max(train.bucket_lengths, default=0) <= encoder.max_positions,
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
        for key in ("learning_rate", "warmup_steps", "weight_decay", "clip_norm"):
            requirements.append((f"{name}.{key}", getattr(optimizer, key) >= 0, "0 or more"))
    values = dict(_flatten(dataclasses.asdict(config)))
    for key, fulfilled, wanted in requirements:
        if not fulfilled:
            raise InputError(
                f"'{key}' is {values[key]!r}", path=path, remedy=f"it must be {wanted}"
            )


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
