"""The hard negatives of a batch as inputs of the encoder."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.data.pairs import smallest_bucket
from labse_tf.tokenization import Tokenizer


def pack_negatives(
    tokenizer: Tokenizer, negatives: tf.Tensor, bucket_lengths: list[int]
) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Packs the third column of `texts.parse`.

    The batch stays the first dimension, so that replicas can share it.

    Args:
      tokenizer: of the vocabulary.
      negatives: `[batch, count]` strings, "" where a pair has fewer.
      bucket_lengths: as in TrainConfig; they fill the smallest that holds them.

    Returns:
      A dict as `Tokenizer.pack` gives it, int32 `[batch, count, bucket length]`, and bool
      `[batch, count]`: where there is a negative. What is none is `[CLS] [SEP]`, and must not count
      as a candidate.
    """
    tokens = tokenizer(tf.reshape(negatives, [-1]))
    length = smallest_bucket(2 + tf.reduce_max(tokens.row_lengths()), bucket_lengths)
    shape = tf.concat([tf.shape(negatives), [length]], axis=0)
    packed = tokenizer.pack([tokens], length)
    return {name: tf.reshape(ids, shape) for name, ids in packed.items()}, negatives != ""
