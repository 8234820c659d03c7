"""The tokeniser interface that data pipelines, training and export need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import tensorflow as tf
import tf_keras


class Tokenizer(Protocol):
    """Turns text into token ids, and these into packed encoder inputs, in a TensorFlow graph.

    `tokenization.wordpiece` has LaBSE's implementation, `tokenization.byte_pairs` another.

    Attributes:
      tokens: the vocabulary; a token's index is its id.
      special_tokens: ints `vocab_size`, `padding_id`, `start_of_sequence_id`, `end_of_segment_id`,
        `mask_id`.
      layer: `[batch]` strings -> int32 ragged `[batch, (words), (tokens)]`; an export saves it.
    """

    tokens: list[str]
    special_tokens: dict[str, int]
    layer: tf_keras.layers.Layer

    def __call__(self, strings: tf.Tensor) -> tf.RaggedTensor:
        """`[batch]` strings -> int32 ragged `[batch, (tokens)]`, without special tokens."""

    def pack(
        self, segments: list[tf.RaggedTensor], length: int | tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Packs one or two segments, int32 ragged `[batch, (tokens)]`, as `[CLS] a [SEP] b [SEP]`.

        They are truncated round-robin and padded to `length` tokens. Returns `input_word_ids`,
        `input_mask` and `input_type_ids`, int32 `[batch, length]` each.
        """

    def join(self, tokens: Iterable[str]) -> str:
        """Returns the text of a sequence of tokens, without special tokens."""
