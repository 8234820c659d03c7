"""Chooses the hard negatives of each source among the texts and pairs of a pool."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
import regex
import tensorflow as tf
from scipy import sparse

# Punctuation, symbols, white space and format characters. Marks stay: Indic vowels are marks.
_NO_LETTERS = regex.compile(r"[\p{P}\p{S}\p{Z}\p{C}]+")
# The partners of a text with more than this need not be translations of each other: the text is a
# heading, a placeholder, or misaligned.
_MOST_PARTNERS = 20
_BYTES_AT_ONCE = 1 << 28
# Targets examined at first per negative wanted; then four times as many, and so on. The maximum is
# for sources whose nearest targets are all left out: targets beyond it are not near.
_LOOK_AT = 8
_MOST_LOOKED_AT = 4096


def text_key(text: str) -> str:
    """Returns a key shared by texts that differ only in case, width, punctuation or spaces."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).casefold()) or text


@dataclasses.dataclass(frozen=True)
class Pool:
    """Pairs, as `[pairs]` indices of texts: the first text of each `text_key`."""

    sources: list[str]
    targets: list[str]
    pair_sources: np.ndarray
    pair_targets: np.ndarray

    def links(self) -> sparse.csr_array:
        """Returns `[sources, targets]`, 1 where they are a pair."""
        shape = (len(self.sources), len(self.targets))
        ones = np.ones(len(self.pair_sources), np.int32)
        links = sparse.csr_array((ones, (self.pair_sources, self.pair_targets)), shape)
        links.data[:] = 1
        return links


def make_pool(sources: Sequence[str], targets: Sequence[str]) -> Pool:
    """Returns the pool of the pairs `(sources[i], targets[i])`."""
    distinct_sources, pair_sources = _distinct(sources)
    distinct_targets, pair_targets = _distinct(targets)
    return Pool(distinct_sources, distinct_targets, pair_sources, pair_targets)


def _distinct(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    first: dict[str, str] = {}
    keys = [text_key(text) for text in texts]
    for key, text in zip(keys, texts, strict=True):
        first.setdefault(key, text)
    places = {key: place for place, key in enumerate(first)}
    return list(first.values()), np.array([places[key] for key in keys], np.int64)


def translations(links: sparse.csr_array) -> sparse.csr_array:
    """Returns `[sources, targets]`, not 0 where a target is known to translate a source.

    These are the targets paired with it, and those paired with another source that shares a target
    with it: "Hi." - "Salut.", "Hello." - "Salut." and "Hello." - "Bonjour." imply that "Bonjour."
    also translates "Hi.". Texts with more than 20 partners do not link others in this way.
    """
    narrow_targets = links * (links.sum(axis=0) <= _MOST_PARTNERS)
    narrow_sources = sparse.csr_array(links * (links.sum(axis=1) <= _MOST_PARTNERS)[:, np.newaxis])
    shared = sparse.csr_array(narrow_targets) @ sparse.csr_array(narrow_targets).T
    return sparse.csr_array(links + shared @ narrow_sources)


def partners(links: sparse.csr_array) -> np.ndarray:
    """Returns int `[rows, most]`: the columns that each row links to, at most 20; -1 as padding."""
    counts = np.diff(links.indptr)
    width = min(int(counts.max(initial=1)), _MOST_PARTNERS)
    places = links.indptr[:-1, np.newaxis] + np.arange(width)
    inside = np.arange(width) < counts[:, np.newaxis]
    return np.where(inside, links.indices[np.where(inside, places, 0)], -1)


@dataclasses.dataclass(frozen=True)
class Negatives:
    """The negatives of all sources."""

    # Int `[sources, count]`, indices into the pool's targets, nearest first; -1 if none.
    targets: np.ndarray
    similarities: np.ndarray  # Float32 `[sources, count]`; NaN if none.
    translation: np.ndarray  # Float32 `[sources]`: similarity to the nearest translation.
    left_out: dict[str, int]  # Targets by reason: known translations, and as in `choose`.


def choose(
    pool: Pool, sources: np.ndarray, targets: np.ndarray, *, count: int, max_similarity: float
) -> Negatives:
    """Returns the `count` nearest targets of each source that do not seem to translate it.

    Known translations (see `translations`) are left out, and likely ones: targets whose similarity
    to one of the source's targets exceeds `max_similarity` (`near_target`), or that are paired with
    a source that near to this one (`near_source`).

    `sources` and `targets` are the embeddings of the pool's texts, float32 `[..., dim]`, unit rows.
    If `max_similarity` is 1, only known translations are left out.
    """
    links = pool.links()
    targets_of, sources_of = partners(links), partners(sparse.csr_array(links.T))
    known = translations(links).tocoo()
    known_pairs = np.sort(known.row.astype(np.int64) * len(targets) + known.col)

    def reject(rows: np.ndarray, nearest: np.ndarray) -> list[np.ndarray]:
        """Returns which `nearest` targets of sources are left out, by reason: `[rows, depth]`."""
        pairs = rows[:, np.newaxis] * len(targets) + nearest
        places = np.minimum(np.searchsorted(known_pairs, pairs), len(known_pairs) - 1)
        is_known = known_pairs[places] == pairs

        def to_target(places, members):
            vectors = targets[members][:, :, np.newaxis]
            return (targets[nearest[places]] @ vectors)[..., 0]

        def to_source(places, members):
            own = sources[rows[places // nearest.shape[1]]]
            return np.einsum("nd,nd->n", own, sources[members])

        near_target = ~is_known & (_best(targets_of[rows], to_target) > max_similarity)
        similarities = _best(sources_of[nearest.ravel()], to_source).reshape(nearest.shape)
        near_source = ~(is_known | near_target) & (similarities > max_similarity)
        return [is_known, near_target, near_source]

    def to_translation(rows, members):
        return np.einsum("nd,nd->n", sources[rows], targets[members])

    found = Negatives(
        np.full([len(sources), count], -1),
        np.full([len(sources), count], np.nan, np.float32),
        _best(targets_of, to_translation),
        {"translation": 0, "near_target": 0, "near_source": 0},
    )
    all_targets = tf.constant(targets)
    pending, depth = np.arange(len(sources)), count * _LOOK_AT
    deepest = min(_MOST_LOOKED_AT, len(targets))
    while len(pending):
        depth, short = min(depth, deepest), []
        # Similarities to all targets, and the vectors of those found, must fit in memory.
        numbers = max(len(targets), 2 * depth * targets.shape[1])
        size = max(1, _BYTES_AT_ONCE // (4 * numbers))
        for start in range(0, len(pending), size):
            rows = pending[start : start + size]
            top = _top(sources[rows], all_targets, depth)
            similarities, nearest = (tensor.numpy() for tensor in top)
            reasons = reject(rows, nearest)
            done = _fill(found, rows, nearest, similarities, reasons, last=depth == deepest)
            short.append(rows[~done])
        pending, depth = np.concatenate(short), depth * 4
    return found


def _fill(found: Negatives, rows, nearest, similarities, reasons, *, last: bool) -> np.ndarray:
    """Chooses among the nearest targets; returns bool `[rows]`: which rows are done.

    A row is done when it has all its negatives, and in any case on the last call. Reasons are
    counted only then, so once per source.
    """
    count = found.targets.shape[1]
    good = ~np.any(reasons, axis=0)
    # Move good targets to the front, keeping their order.
    order = np.argsort(~good, axis=1, kind="stable")[:, :count]
    is_good, nearest, similarities = (
        np.take_along_axis(values, order, axis=1) for values in (good, nearest, similarities)
    )
    width = order.shape[1]
    found.targets[rows, :width] = np.where(is_good, nearest, -1)
    found.similarities[rows, :width] = np.where(is_good, similarities, np.nan)
    done = (good.sum(axis=1) >= count) | last
    wanted = (np.cumsum(good, axis=1) < count) & done[:, np.newaxis]
    for reason, left_out in zip(found.left_out, reasons, strict=True):
        found.left_out[reason] += int((left_out & wanted).sum())
    return done


def _best(members: np.ndarray, similarity: Callable) -> np.ndarray:
    """Returns float32 `[n, ...]`: the largest similarity of each row to one of its members.

    `members`, int `[n, most]`, come from `partners`; `similarity` takes row indices and one member
    of each, both `[m]` ints, and returns float32 `[m, ...]`.
    """
    rows, columns = np.nonzero(members >= 0)
    values = similarity(rows, members[rows, columns])
    return np.maximum.reduceat(values, np.flatnonzero(columns == 0), axis=0)


@tf.function(reduce_retracing=True)
def _top(queries: tf.Tensor, candidates: tf.Tensor, depth: int):
    """Returns the largest dot products of each query and their indices, `[n, depth]` each."""
    return tf.math.top_k(tf.matmul(queries, candidates, transpose_b=True), depth)
