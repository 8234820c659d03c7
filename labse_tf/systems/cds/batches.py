"""Batches for the translators: tagged source ids and target ids."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from labse_tf.data import streams, texts
from labse_tf.data.features import Features
from labse_tf.data.pairs import BATCHES_PER_WINDOW, byte_lengths, smallest_bucket, sorted_windows
from labse_tf.data.record_counts import language_weights
from labse_tf.files.corpus_files import BITEXT
from labse_tf.systems.cds.config import CdsConfig
from labse_tf.tokenization.protocol import Tokenizer

# Special tokens of `[CLS] tag [SEP] source [SEP]` and `target [SEP]`.
_SOURCE_SPECIALS = 3
_TARGET_SPECIALS = 1

TRANSLATION_FEATURES: Features = {
    name: tf.TensorSpec([None, None], tf.int32) for name in ("inputs", "targets")
}


def translation_batches(
    settings: CdsConfig,
    tokenizer: Tokenizer,
    inputs: Sequence[str],
    *,
    key: str,
    languages: Sequence[str],
    seed: int,
    step: int = 0,
) -> tf.data.Dataset:
    """Returns an endless dataset of global batches, in a fixed order; see `pair_batches`.

    Args:
      settings: how the pairs are sampled and cut.
      tokenizer: the tokeniser of the run's vocabulary.
      inputs: the bitext.
      key: its name in the configuration, for error messages.
      languages: codes; other languages are left out. An empty list means all.
      seed: determines the order.
      step: number of batches before, which a resumed run has seen.

    Returns:
      A dataset of TRANSLATION_FEATURES, as `encode_pairs` returns them.
    """
    files = texts.find_files(inputs, BITEXT, languages, key=key)
    place = streams.position(step, seed)
    weights = language_weights(files, settings.language_exponent)
    drawn = streams.drawn_of(weights, place.start * settings.batch_size)
    by_language = streams.language_streams(files, seed=place.seed, drawn=drawn)
    named = {
        language: tf.data.Dataset.zip((tf.data.Dataset.from_tensors(language).repeat(), stream))
        for language, stream in by_language.items()
    }
    records = streams.mix(named, weights, seed=place.seed)
    windows = records.batch(settings.batch_size * BATCHES_PER_WINDOW, drop_remainder=True)

    def measure(window):
        languages, serialized = window
        columns = (*texts.parse(BITEXT, serialized), languages)
        return columns, tf.maximum(*(byte_lengths(side) for side in columns[:2]))

    def encode(source, target, language):
        return encode_pairs(tokenizer, source, target, language, settings.bucket_lengths)

    batches = sorted_windows(windows, measure, settings.batch_size, skip=place.skip)
    return batches.map(encode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)


def encode_pairs(
    tokenizer: Tokenizer,
    source: tf.Tensor,
    target: tf.Tensor,
    language: tf.Tensor,
    bucket_lengths: list[int],
) -> dict[str, tf.Tensor]:
    """Turns a batch of pairs into ids of one length, the smallest bucket that holds them.

    The source is `[CLS] tag [SEP] source [SEP]`. The tag is the target's language code, tokenised
    like text: there are fewer reserved tokens than languages. The target is `target [SEP]`. Tokens
    beyond the last bucket are cut off.

    Args:
      tokenizer: the tokeniser of the vocabulary that both sides share.
      source: `[batch]` strings.
      target: `[batch]` strings.
      language: `[batch]` strings, the codes of the targets' languages.
      bucket_lengths: ascending, tokens.

    Returns:
      `inputs` and `targets`, int32 `[batch, length]` each, padded with 0.
    """
    source, target, tag = tokenizer(source), tokenizer(target), tokenizer(language)
    longest = tf.maximum(
        tf.reduce_max(source.row_lengths() + tag.row_lengths()) + _SOURCE_SPECIALS,
        tf.reduce_max(target.row_lengths()) + _TARGET_SPECIALS,
    )
    length = smallest_bucket(longest, bucket_lengths)
    inputs = tokenizer.pack([tag, source], length)["input_word_ids"]
    end = tf.fill([target.nrows(), 1], tokenizer.special_tokens["end_of_segment_id"])
    targets = tf.concat([target[:, : length - _TARGET_SPECIALS], end], axis=1)
    shape = tf.stack([target.nrows(), tf.cast(length, tf.int64)])
    return {"inputs": inputs, "targets": targets.to_tensor(shape=shape)}
