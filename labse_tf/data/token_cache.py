"""Pairs in memory, as tokens: each is read and tokenised once, then drawn in any order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import tensorflow as tf

from labse_tf.data import texts
from labse_tf.data.record_counts import count_records
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.progress import Progress
from labse_tf.tokenization.protocol import Tokenizer

_Item, _Result = TypeVar("_Item"), TypeVar("_Result")


class TokenCache(NamedTuple):
    """The pairs of a corpus, a language after the other.

    Attributes:
      columns: int32 ragged `[pairs, (tokens)]` each: sources, targets, then each hard negative.
      keys: int32 `[pairs, columns]`: hashes of the texts.
      longest: int32 `[pairs]`: tokens of the longer side.
      sizes: language -> its number of pairs, in order.
    """

    columns: list[tf.RaggedTensor]
    keys: tf.Tensor
    longest: tf.Tensor
    sizes: dict[str, int]

    @property
    def starts(self) -> np.ndarray:
        """int64 `[languages]`: the first pair of each language."""
        return np.cumsum([0, *self.sizes.values()], dtype=np.int64)[:-1]


def read_tokens(
    files: Sequence[CorpusFile],
    tokenizer: Tokenizer,
    key_of: Callable[[tf.Tensor], tf.Tensor],
    *,
    tokens: int,
    negatives: int = 0,
) -> TokenCache:
    """Reads and tokenises all pairs.

    Args:
      files: bitext.
      tokenizer: of the run's vocabulary.
      key_of: maps `[n]` strings to int32 hashes.
      tokens: texts are cut to this number.
      negatives: hard negatives of a pair.

    Raises:
      InputError: if a file is broken.
    """

    def encode(strings: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
        flat = tf.reshape(tf.constant(strings), [-1])
        ragged = [tokenizer(tf.constant(column))[:, :tokens] for column in strings.T]
        ids = [column.flat_values.numpy() for column in ragged]
        lengths = [column.row_lengths().numpy() for column in ragged]
        return ids, lengths, tf.reshape(key_of(flat), strings.shape).numpy()

    order = sorted(files, key=lambda file: (file.language, file))
    sizes = dict.fromkeys((file.language for file in order), 0)
    ids, lengths, keys = [], [], []

    def chunks() -> Iterator[np.ndarray]:
        for file in order:
            for chunk in texts.columns(file, negatives=negatives):
                sizes[file.language] += len(chunk)
                yield chunk

    with Progress("tokenise", total=sum(count_records(files).values()), unit="pair") as progress:
        for some_ids, some_lengths, some_keys in _in_threads(encode, chunks()):
            ids.append(some_ids)
            lengths.append(some_lengths)
            keys.append(some_keys)
            progress.update(len(some_keys))
    if not keys:
        raise texts.no_records()
    columns = [
        tf.RaggedTensor.from_row_lengths(np.concatenate(flat), np.concatenate(rows), validate=False)
        for flat, rows in zip(zip(*ids, strict=True), zip(*lengths, strict=True), strict=True)
    ]
    source, target = (column.row_lengths() for column in columns[:2])
    longest = tf.cast(tf.maximum(source, target), tf.int32)
    return TokenCache(columns, tf.constant(np.concatenate(keys)), longest, sizes)


def draw_pairs(
    cache: TokenCache,
    weights: dict[str, float],
    *,
    seed: int,
    draws: int,
    before: int = 0,
    draw_seed: int | None = None,
) -> tf.data.Dataset:
    """Returns an endless dataset of windows: numbers of pairs, int64 `[draws]`.

    A language is drawn by weight, then the next of its pairs. All its pairs come, in an order
    that a hash of the seed gives, before any comes again in another order.

    Args:
      cache: the pairs.
      weights: each language's share.
      seed: determines the order of a language's pairs.
      draws: of languages, for one window.
      before: pairs drawn before, of each language as many as its share says.
      draw_seed: determines which languages are drawn; `seed` if it is None.
    """
    sizes = tf.constant(list(cache.sizes.values()), tf.int64)
    starts = tf.constant(cache.starts)
    shares = np.array([weights[language] for language in cache.sizes])
    shares = shares / shares.sum()
    bounds = tf.constant(np.cumsum(shares), tf.float64)
    draw_seed = seed if draw_seed is None else draw_seed

    @tf.autograph.experimental.do_not_convert
    def draw(drawn: tf.Tensor, number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        random = tf.random.stateless_uniform([draws], [draw_seed, number], dtype=tf.float64)
        language = tf.searchsorted(bounds, random, side="right")
        place = tf.gather(drawn, language) + _earlier(language)
        size = tf.gather(sizes, language)
        passes = tf.cast(place // size, tf.int32)
        seeds = tf.stack([tf.fill(tf.shape(language), seed), language, passes], axis=1)
        # `tf.random.experimental.index_shuffle` takes only one seed for all.
        shuffled = tf.raw_ops.RandomIndexShuffle(index=place % size, seed=seeds, max_index=size - 1)
        counted = tf.math.bincount(language, minlength=len(cache.sizes), dtype=tf.int64)
        return drawn + counted, tf.gather(starts, language) + shuffled

    drawn = tf.constant(np.round(shares * before), tf.int64)
    return tf.data.Dataset.counter().scan(drawn, draw)


def _earlier(values: tf.Tensor) -> tf.Tensor:
    """Returns int64 `[n]`: how many of the values before each one equal it."""
    order = tf.argsort(values, stable=True)
    ordered = tf.gather(values, order)
    first = tf.searchsorted(ordered, ordered)
    rank = tf.range(tf.size(values)) - first
    return tf.cast(tf.scatter_nd(order[:, tf.newaxis], rank, tf.shape(rank)), tf.int64)


def _in_threads(function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
    """Yields the results in order; few items are taken before their turn."""
    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        pending: deque = deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > 2 * cores:
                yield pending.popleft().result()
        yield from (future.result() for future in pending)
