"""The configuration of a run: one typed tree, filled from a YAML preset and `--set a.b=c`.

Section numbers refer to the LaBSE paper (arXiv 2007.01852). The presets lie in `configs/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ACTIVATIONS = ("gelu_tanh", "gelu")
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass
class TokenizerConfig:
    """The vocabulary, and the longest word (bytes) that is split rather than made [UNK]."""

    vocab_file: str = ""
    max_bytes_per_word: int = 600


@dataclass
class EncoderConfig:
    """The transformer. A `vocab_size` of 0 stands for the number of tokens in the vocabulary.

    With `averaging_start` [CLS] is the average of its sentence at first: a dual encoder that is not
    pre-trained learns faster from there.
    """

    vocab_size: int = 0
    hidden_size: int = 768
    num_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    dropout: float = 0.1
    activation: str = "gelu_tanh"
    initializer_range: float = 0.02
    averaging_start: bool = False


@dataclass
class ComputeConfig:
    """How the encoder computes while it is trained.

    `precision` is of activations and matrix products; weights, losses and updates are float32.
    "auto" is bfloat16 where the device computes it natively (TPU, GPU from compute capability 8.0,
    CPU with AVX512-BF16 or AMX), else float32: emulated, bfloat16 can be many times slower.
    `xla` compiles each layer (on TPUs all is compiled, whatever it says).
    """

    precision: str = "auto"
    xla: bool = False


@dataclass
class OptimizerConfig:
    """AdamW with linear warm-up and linear decay to 0; a `clip_norm` of 0 clips nothing.

    `warmup_steps` are the steps until the rate is `learning_rate`; below 1 they are a share of the
    run's steps (of a stage's, where there are stages).

    With `lazy_embeddings` a step updates the rows of the embedding table that its batch holds, and
    the others make up for it when they are next read: what large vocabularies need on CPU and GPU.
    """

    learning_rate: float = 1e-3
    warmup_steps: float = 0.1
    weight_decay: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.999
    clip_norm: float = 1.0
    lazy_embeddings: bool = True

    def warmup_of(self, steps: int) -> int:
        """Returns the steps of warm-up in a run of `steps` steps."""
        share = self.warmup_steps < 1
        return int(self.warmup_steps * steps) if share else int(self.warmup_steps)


@dataclass
class LoopConfig:
    """Steps between two log lines, steps between two checkpoints, checkpoints kept."""

    log_interval: int = 100
    checkpoint_interval: int = 1000
    checkpoints_kept: int = 2


@dataclass
class PretrainConfig:
    """MLM + TLM with progressive stacking (section 3.2). Lengths are tokens.

    `stage_steps` has an entry a stage; the last stage has all layers of the encoder, each one
    before it half as many. `language_exponent` s samples language l in proportion to n_l ** s, with
    n_l its number of texts or pairs.
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
    """Dual-encoder training with additive margin softmax (equations 1 to 4, section 3.2).

    `batch_size` is the global batch (pairs over all replicas). A batch is padded to the smallest
    of `bucket_lengths` (tokens) that holds it; the last one is the maximum length. A replica
    embeds `chunk_size` pairs at a time (0: all at once), which changes memory and time alone.
    Without `global_negatives` a pair's negatives are those of its replica alone. With
    `mask_duplicates` pairs that share a text are not each other's negatives.
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
            optimizer=OptimizerConfig(learning_rate=2e-3, warmup_steps=0.025),
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
    noisy_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(warmup_steps=0.05)
    )
    trusted_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=1e-4, warmup_steps=0.02)
    )
    loop: LoopConfig = field(default_factory=LoopConfig)


@dataclass
class DistillConfig:
    """Learning the vectors of another model (`labse distill`); `train` tells the rest.

    `teacher` is a model dir. `monolingual` are corpora of sentences that are learned from beside
    both sides of `train.bitext`; languages are sampled from all by `train.language_exponent`.
    """

    teacher: str = ""
    monolingual: list[str] = field(default_factory=list)


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
    distill: DistillConfig = field(default_factory=DistillConfig)
    negatives: NegativesConfig = field(default_factory=NegativesConfig)
    contrastive: ContrastiveConfig = field(default_factory=ContrastiveConfig)


def flatten(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the full name of each key of a nested dict, and its value."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
