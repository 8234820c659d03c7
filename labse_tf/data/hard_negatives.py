"""The hard negatives of a batch as inputs of the encoder."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.tokenization.protocol import Tokenizer


def pack_negatives(
    tokenizer: Tokenizer, tokens: tf.RaggedTensor, count: int, length: int | tf.Tensor
) -> dict[str, tf.Tensor]:
    """Packs the third column of `texts.parse`.

    The batch stays the first dimension, so that it can be split among replicas.

    Args:
      tokenizer: of the vocabulary.
      tokens: those of the negatives, `[batch * count, (tokens)]`; empty rows if a pair has fewer.
      count: negatives per pair.
      length: length of the packed sequences, tokens.

    Returns:
      A dict like that of `Tokenizer.pack`, int32 `[batch, count, length]`. Missing negatives are
      `[CLS] [SEP]` and must not count as candidates.
    """
    packed = tokenizer.pack([tokens], length)
    return {name: tf.reshape(ids, [-1, count, length]) for name, ids in packed.items()}
