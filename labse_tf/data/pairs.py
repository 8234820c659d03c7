"""Batches for the dual encoder: translation pairs of similar length, so that little is padding."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Sequence

import tensorflow as tf

from labse_tf.config import TrainConfig
from labse_tf.data import streams, texts
from labse_tf.data.features import ENCODER_INPUTS, Features
from labse_tf.data.record_counts import count_records, language_weights
from labse_tf.data.token_cache import TokenCache, draw_pairs, read_tokens
from labse_tf.files.corpus_files import BITEXT, CorpusFile
from labse_tf.tokenization.protocol import Tokenizer

BATCHES_PER_WINDOW = 16
NO_KEY = -1
_SPECIALS = 2  # [CLS] and [SEP]


def pair_features(hard_negatives: int) -> Features:
    """Returns the features of `pair_batches` with this number of hard negatives per pair."""
    features = {
        "source": ENCODER_INPUTS,
        "target": ENCODER_INPUTS,
        "keys": tf.TensorSpec([None, 2], tf.int32),
    }
    if hard_negatives:
        shape = [None, hard_negatives]
        features["negatives"] = {
            name: tf.TensorSpec([*shape, None], spec.dtype) for name, spec in ENCODER_INPUTS.items()
        }
        features["negative_keys"] = tf.TensorSpec(shape, tf.int32)
    return features


def pair_batches(
    settings: TrainConfig,
    tokenizer: Tokenizer,
    *,
    languages: Sequence[str],
    seed: int,
    section: str = "train",
) -> Callable[..., tf.data.Dataset]:
    """Returns a function that makes an endless dataset of global batches, in a fixed order.

    A window of pairs, of mixed languages or of one, is sorted by length and cut into batches, which
    come in random order; each is padded to the smallest bucket that holds its longest sentence. A
    window has 16 batches, but at most one pass over a small corpus: otherwise sorting would bring
    copies of a pair into one batch. With `cache_tokens` all pairs are read before the first batch,
    and kept for all datasets made.

    Args:
      settings: `bitext` and how it is sampled and cut.
      tokenizer: the tokeniser of the run's vocabulary.
      languages: codes; other languages are left out. An empty list means all.
      seed: determines the order.
      section: the name of `settings` in the configuration, for error messages.

    Returns:
      A function of the number of batches that a resumed run has seen, and optionally of the part
      of each batch that is to be made, without `cache_tokens`. It returns a dataset of
      `pair_features`: `source` and `target` as `Tokenizer.pack` returns them, int32
      `[batch_size, bucket length]`, and `keys`, int32 `[batch_size, 2]`: hashes of both texts. With
      k hard negatives also `negatives`, int32 `[batch_size, k, bucket length]`, and
      `negative_keys`, int32 `[batch_size, k]`, NO_KEY where a pair has fewer.
    """
    files = texts.find_files(settings.bitext, BITEXT, languages, key=f"{section}.bitext")
    own = frozenset(file.language for file in files)
    if settings.replay:
        more = texts.find_files(settings.replay, BITEXT, languages, key=f"{section}.replay")
        files = [*files, *(file for file in more if file.language not in own)]
    if settings.hard_negatives:
        texts.require_negatives(files)

    @functools.cache
    def weights() -> dict[str, float]:
        return _weights(files, settings, own)

    @functools.cache
    def cached() -> TokenCache:
        tokens = settings.bucket_lengths[-1] - _SPECIALS
        limits = {"tokens": tokens, "negatives": settings.hard_negatives}
        return read_tokens(files, tokenizer, _key, **limits)

    def batches(step: int, part: streams.Part = streams.WHOLE) -> tf.data.Dataset:
        place = streams.position(step, seed, part)
        if settings.cache_tokens:
            cut, read = _cut_cached(cached(), files, settings, place, weights(), seed=seed)
        else:
            rows = settings.batch_size // part.of
            own_settings = dataclasses.replace(settings, batch_size=rows)
            cut, read = _cut_texts(files, own_settings, tokenizer, place, weights())
        pack = functools.partial(_pack, settings, tokenizer, read)
        return cut.map(pack, num_parallel_calls=tf.data.AUTOTUNE).prefetch(4)

    return batches


def _weights(
    files: Sequence[CorpusFile], settings: TrainConfig, own: Collection[str]
) -> dict[str, float]:
    """Returns each language's share of the pairs; languages that are not `own` are replayed."""
    groups = [[file for file in files if (file.language in own) == is_own] for is_own in (1, 0)]
    shares = (1 - settings.replay_share, settings.replay_share) if all(groups) else (1, 1)
    return {
        language: share * weight
        for group, share in zip(groups, shares, strict=True)
        if group
        for language, weight in language_weights(group, settings.language_exponent).items()
    }


@tf.autograph.experimental.do_not_convert
def _pack(settings: TrainConfig, tokenizer: Tokenizer, read: Callable, *element) -> dict:
    columns, keys = read(*element)
    longest = _SPECIALS + tf.reduce_max([tf.reduce_max(column.row_lengths()) for column in columns])
    length = smallest_bucket(longest, settings.bucket_lengths)
    source, target, *wrong = (tokenizer.pack([column], length) for column in columns)
    batch = {"source": source, "target": target, "keys": keys[:, :2]}
    if wrong:
        # The batch stays the first dimension, so that it can be split among replicas.
        batch["negatives"] = tf.nest.map_structure(lambda *ids: tf.stack(ids, axis=1), *wrong)
        batch["negative_keys"] = keys[:, 2:]
    return batch


def _cut_cached(
    cache: TokenCache,
    files: Sequence[CorpusFile],
    settings: TrainConfig,
    place: streams.Position,
    weights: dict[str, float],
    *,
    seed: int,
) -> tuple[tf.data.Dataset, Callable]:
    """Same as `_cut_texts`, of numbers of pairs whose tokens are in memory.

    A pass over a language continues from segment to segment, so its order has the run's `seed`.
    """
    window = _window(files, settings)
    draws = window * settings.batch_size
    before = {"before": place.start * settings.batch_size, "draw_seed": place.seed}
    pairs = draw_pairs(cache, weights, seed=seed, draws=draws, **before)

    def measure(pairs):
        lengths = tf.gather(cache.longest, pairs)
        return (pairs,), lengths

    def read(pairs):
        columns = [tf.gather(column, pairs) for column in cache.columns]
        return columns, tf.gather(cache.keys, pairs)

    batches = sorted_windows(pairs, measure, settings.batch_size, window=window, skip=place.skip)
    return batches, read


def _cut_texts(
    files: Sequence[CorpusFile],
    settings: TrainConfig,
    tokenizer: Tokenizer,
    place: streams.Position,
    weights: dict[str, float],
) -> tuple[tf.data.Dataset, Callable]:
    """Returns batches of pairs of `files`, and what reads the pairs of a batch.

    That function returns the tokens of each column, ragged `[batch, (tokens)]`, and the hashes of
    all columns, int32 `[batch, columns]`.
    """
    negatives = settings.hard_negatives
    by_language = streams.language_streams(
        files,
        seed=place.seed,
        drawn=streams.drawn_of(weights, place.start * settings.batch_size),
        part=place.part,
        negatives=negatives,
    )
    pairs = streams.mix(by_language, weights, seed=place.seed)
    batches = _cut(
        pairs, files, settings, lambda text: tokenizer(text).row_lengths(), skip=place.skip
    )

    def read(*columns):
        strings = tf.concat([tf.reshape(one, [settings.batch_size, -1]) for one in columns], axis=1)
        sides = tf.unstack(strings, 2 + negatives, axis=1)
        return [tokenizer(side) for side in sides], _key(strings)

    return batches, read


def _cut(
    pairs: tf.data.Dataset,
    files: Sequence[CorpusFile],
    settings: TrainConfig,
    lengths: Callable[[tf.Tensor], tf.Tensor],
    *,
    skip: int = 0,
) -> tf.data.Dataset:
    """Cuts serialized pairs of `files` into batches of columns, skipping the first `skip` batches.

    Batches have similar `lengths` if there are several buckets.
    """

    def parse(serialized):
        return tuple(texts.parse(BITEXT, serialized, negatives=settings.hard_negatives))

    if len(settings.bucket_lengths) == 1:
        return pairs.batch(settings.batch_size, drop_remainder=True).skip(skip).map(parse)

    def measure(serialized):
        columns = parse(serialized)
        return columns, tf.maximum(*(lengths(side) for side in columns[:2]))

    window = _window(files, settings)
    windows = pairs.batch(settings.batch_size * window, drop_remainder=True)
    return sorted_windows(windows, measure, settings.batch_size, window=window, skip=skip)


def _window(files: Sequence[CorpusFile], settings: TrainConfig) -> int:
    batches = sum(count_records(files).values()) // settings.batch_size
    return min(max(1, batches), BATCHES_PER_WINDOW)


def sorted_windows(
    windows: tf.data.Dataset,
    measure: Callable[..., tuple[tuple[tf.Tensor, ...], tf.Tensor]],
    batch_size: int,
    *,
    window: int = BATCHES_PER_WINDOW,
    skip: int = 0,
) -> tf.data.Dataset:
    """Cuts each window into batches of similar length, in random order.

    Args:
      windows: an endless dataset; an element has `window * batch_size` records, texts or numbers.
      measure: maps an element to its columns and its lengths, in any unit.
      batch_size: rows per batch.
      window: number of batches sorted together.
      skip: number of batches to skip at the start; windows skipped as a whole are not measured.

    Returns:
      A dataset of tuples of the columns, `[batch_size]` each.
    """

    @tf.autograph.experimental.do_not_convert
    def measured(index, elements):
        return index, *measure(elements)

    def cut(index, columns, lengths):
        order = tf.reshape(tf.argsort(lengths, stable=True), [-1, batch_size])
        order = tf.random.experimental.stateless_shuffle(order, seed=tf.stack([index, 0]))
        return tf.data.Dataset.from_tensor_slices(tuple(tf.gather(side, order) for side in columns))

    whole_windows, batches = divmod(skip, window)
    windows = windows.enumerate().skip(whole_windows)
    windows = windows.map(measured, num_parallel_calls=tf.data.AUTOTUNE)
    return windows.flat_map(cut).skip(batches)


def byte_lengths(texts_: tf.Tensor) -> tf.Tensor:
    """Returns int32 `[n]`: within a script, a good estimate of tokens that needs no tokeniser."""
    return tf.strings.length(texts_)


def _key(texts_: tf.Tensor) -> tf.Tensor:
    # 31 bits, as TPUs have no other integers. In a batch of 4096, one text in a thousand or fewer
    # shares its key with another by chance.
    hashes = tf.cast(tf.strings.to_hash_bucket_fast(texts_, 2**31 - 1), tf.int32)
    return tf.where(texts_ == "", NO_KEY, hashes)


def smallest_bucket(longest: tf.Tensor, lengths: list[int]) -> int | tf.Tensor:
    """Returns the smallest of the ascending `lengths` that holds `longest`, else the last one."""
    if len(lengths) == 1:
        return lengths[0]
    fits = tf.searchsorted(lengths, [tf.cast(longest, tf.int32)])[0]
    return tf.constant(lengths)[tf.minimum(fits, len(lengths) - 1)]
