"""Batches for the dual encoder: translation pairs of like length, so that little is padding."""

from __future__ import annotations

import tensorflow as tf

from labse_tf.config import Config
from labse_tf.corpus_files import BITEXT
from labse_tf.data import texts
from labse_tf.tokenization import Tokenizer

_BATCHES_A_WINDOW = 16


def pair_batches(config: Config, tokenizer: Tokenizer, *, skip: int = 0) -> tf.data.Dataset:
    """Returns an endless dataset of global batches, in one fixed order.

    A window of pairs, languages mixed, is sorted by length and cut into batches, which come in
    random order; each is padded to the smallest bucket that holds its longest sentence.

    Args:
      config: the run's configuration.
      tokenizer: of its vocabulary.
      skip: the first batches to leave out, which a resumed run has seen.

    Returns:
      A dataset of `(source, target)`, each a dict as `Tokenizer.pack` gives it, int32
      `[batch_size, bucket length]`.
    """
    settings = config.train
    files = texts.find_files(settings.bitext, BITEXT, config.languages, key="train.bitext")
    streams = texts.language_streams(files, seed=config.seed)
    weights = texts.language_weights(files, settings.language_exponent)
    pairs = texts.mix(streams, weights, seed=config.seed)
    if len(settings.bucket_lengths) == 1:
        batches = pairs.batch(settings.batch_size, drop_remainder=True).map(_parse)
    else:
        window = settings.batch_size * _BATCHES_A_WINDOW
        batches = pairs.batch(window, drop_remainder=True).enumerate()
        batches = batches.flat_map(
            lambda index, records: _sorted_batches(_parse(records), settings.batch_size, index)
        )

    def pack(source, target):
        source, target = tokenizer(source), tokenizer(target)
        length = _bucket(source, target, settings.bucket_lengths)
        return tokenizer.pack([source], length), tokenizer.pack([target], length)

    return batches.skip(skip).map(pack, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)


def _parse(serialized: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    source, target = texts.parse(BITEXT, serialized)
    return source, target


def _sorted_batches(
    pair: tuple[tf.Tensor, tf.Tensor], batch_size: int, index: tf.Tensor
) -> tf.data.Dataset:
    # By bytes: near enough to tokens within a script, and known before tokenising.
    lengths = tf.maximum(*(tf.strings.length(side) for side in pair))
    order = tf.reshape(tf.argsort(lengths, stable=True), [_BATCHES_A_WINDOW, batch_size])
    order = tf.random.experimental.stateless_shuffle(order, seed=tf.stack([index, 0]))
    return tf.data.Dataset.from_tensor_slices(tuple(tf.gather(side, order) for side in pair))


def _bucket(source: tf.RaggedTensor, target: tf.RaggedTensor, lengths: list[int]) -> tf.Tensor:
    """Returns the smallest length that holds the longest sentence with [CLS] and [SEP]."""
    if len(lengths) == 1:
        return lengths[0]
    longest = 2 + tf.maximum(
        tf.reduce_max(source.row_lengths()), tf.reduce_max(target.row_lengths())
    )
    fits = tf.searchsorted(lengths, [tf.cast(longest, tf.int32)])[0]
    return tf.constant(lengths)[tf.minimum(fits, len(lengths) - 1)]
