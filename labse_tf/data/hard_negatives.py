"""The hard negatives of a batch as inputs of the encoder."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.tokenization.protocol import Tokenizer


def pack_negatives(
    tokenizer: Tokenizer, tokens: tf.RaggedTensor, count: int, length: int | tf.Tensor
) -> dict[str, tf.Tensor]:
    """Packs the third column of `texts.parse`.

    The batch stays the first dimension, so that replicas can share it.

    Args:
      tokenizer: of the vocabulary.
      tokens: of the negatives, `[batch * count, (tokens)]`; none where a pair has fewer.
      count: negatives of a pair.
      length: of the packed sequences, tokens.

    Returns:
      A dict as `Tokenizer.pack` gives it, int32 `[batch, count, length]`. What is none is
      `[CLS] [SEP]`, and must not count as a candidate.
    """
    packed = tokenizer.pack([tokens], length)
    return {name: tf.reshape(ids, [-1, count, length]) for name, ids in packed.items()}
