"""The encoder, its vocabulary, and its precision and compilation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from labse_tf.config.requirements import (
    Requirement,
    at_least,
    dropout,
    heads,
    more_than_0,
)

ACTIVATIONS = ("gelu_tanh", "gelu")
BERT, BILSTM = "bert", "bilstm"
OWN_NETWORKS = (BERT, BILSTM)
MAX = "max"
POOLINGS = ("cls", "mean", MAX)
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass
class TokenizerConfig:
    """The vocabulary. Words longer than `max_bytes_per_word` (bytes) become [UNK]."""

    vocab_file: str = ""
    max_bytes_per_word: int = 600

    def requirements(self, section: str) -> Iterator[Requirement]:
        yield from at_least(1, section, self, "max_bytes_per_word")


@dataclass
class EncoderConfig:
    """The encoder. A `vocab_size` of 0 means the number of tokens in the vocabulary.

    `network` is "bert", a Transformer of the sizes given here; "bilstm", the bidirectional LSTM of
    LASER; or `module:attribute`: a function that takes this section and returns your own
    `EncoderNetwork` (labse_tf/model/protocol.py).

    A "bilstm" has `num_layers` of `hidden_size` / 2 units a direction, on token vectors of
    `embedding_size` (0: `hidden_size`). Its pooling is the maximum over all tokens.

    BERT's `pooling` is "cls", tanh(dense([CLS])) as in LaBSE, or "mean", dense(average of all
    tokens), where dense begins as the identity; layers have dropout, but embeddings have not.
    With `num_layers` 0 there is neither: the encoder is the average of its tokens' rows of the
    embedding table.

    With `averaging_start`, [CLS] starts as the average of its sentence, from which a dual encoder
    that is not pre-trained learns faster.

    With `subwords`, for an encoder without layers, a token's vector is the sum of its own row and
    of the rows of the tokens of at most n characters that spell it, for each n of the list. With
    `ngrams`, also of rows of its overlapping n-grams, without case, for each n of that list.
    With `split_rate` too, a training step replaces each distinct token of its batch by shorter ones
    that spell it, with this probability (as Hiraoka 2022, "MaxMatch-Dropout", does for each word).
    """

    network: str = BERT
    vocab_size: int = 0
    embedding_size: int = 0
    hidden_size: int = 768
    num_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    dropout: float = 0.1
    activation: str = "gelu_tanh"
    initializer_range: float = 0.02
    averaging_start: bool = False
    pooling: str = "cls"
    subwords: list[int] = field(default_factory=list)
    ngrams: list[int] = field(default_factory=list)
    split_rate: float = 0.0

    @property
    def token_size(self) -> int:
        """The width of a token's vector."""
        return self.embedding_size or self.hidden_size

    @property
    def has_parts(self) -> bool:
        """Whether tokens' vectors are sums of several rows."""
        return bool(self.subwords or self.ngrams)

    def requirements(self, section: str) -> Iterator[Requirement]:
        known = self.activation in ACTIVATIONS
        yield Requirement(f"{section}.activation", known, f"one of {ACTIVATIONS}")
        known = self.pooling in POOLINGS
        yield Requirement(f"{section}.pooling", known, f"one of {POOLINGS}")
        for name in ("subwords", "ngrams"):
            lengths = getattr(self, name)
            wanted = "empty: it is for an encoder without layers ('num_layers' 0)"
            yield Requirement(f"{section}.{name}", not (lengths and self.num_layers), wanted)
            known = all(length > 0 for length in lengths)
            yield Requirement(f"{section}.{name}", known, "a list of numbers of characters above 0")
        some = 0.0 <= self.split_rate < 1.0 and (self.has_parts or not self.split_rate)
        wanted = "in [0, 1), and 0 without 'subwords' and 'ngrams'"
        yield Requirement(f"{section}.split_rate", some, wanted)
        yield from self._requirements_of_lstm(section)
        if self.num_layers and self.network != BILSTM:
            yield heads(section, self)
        yield from at_least(0, section, self, "vocab_size", "num_layers", "embedding_size")
        # Two columns of a table without layers are spare.
        yield from at_least(1 if self.num_layers else 3, section, self, "hidden_size")
        yield from at_least(1, section, self, "intermediate_size")
        yield from more_than_0(section, self, "initializer_range")
        yield dropout(section, self)

    def _requirements_of_lstm(self, section: str) -> Iterator[Requirement]:
        if self.network != BILSTM:
            wanted = f"0: it is for 'network' {BILSTM!r}"
            yield Requirement(f"{section}.embedding_size", not self.embedding_size, wanted)
            wanted = f"'cls' or 'mean': {MAX!r} is for 'network' {BILSTM!r}"
            yield Requirement(f"{section}.pooling", self.pooling != MAX, wanted)
            return
        yield from at_least(1, section, self, "num_layers")
        even = self.hidden_size % 2 == 0
        yield Requirement(f"{section}.hidden_size", even, "even: half of it is a direction's")
        wanted = f"false: it is for 'network' {BERT!r}"
        yield Requirement(f"{section}.averaging_start", not self.averaging_start, wanted)


@dataclass
class ComputeConfig:
    """Precision and compilation of the encoder in training.

    `precision` applies to activations and matrix products; weights, losses and updates are float32.
    "auto" is bfloat16 where the device supports it natively (TPU, GPU from compute capability 8.0,
    CPU with AVX512-BF16 or AMX), else float32: emulated, bfloat16 can be many times slower.
    `xla` compiles each layer of BERT (on TPUs everything is compiled regardless). With
    `rematerialize`, only the inputs of BERT's layers are kept for the backward pass, which computes
    the rest again: less memory, for a third more operations.
    """

    precision: str = "auto"
    xla: bool = False
    rematerialize: bool = False

    def requirements(self, section: str) -> Iterator[Requirement]:
        known = self.precision in PRECISIONS
        yield Requirement(f"{section}.precision", known, f"one of {PRECISIONS}")
