"""Chooses the hard negatives of a pool's sources."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from scipy import sparse

from labse_tf.hard_negatives.pool import Pool, partners, translations

_BYTES_AT_ONCE = 1 << 28
# What is looked at first, a negative; then four times as many, and so on. Of a source whose
# nearest targets are all left out, the most: what is behind these is not near.
_LOOK_AT = 8
_MOST_LOOKED_AT = 4096


@dataclasses.dataclass(frozen=True)
class Negatives:
    """What was chosen.

    Attributes:
      targets: int `[sources, count]`, places in the pool's `targets`, nearest first; -1 where none.
      similarities: float32 `[sources, count]`, of the source and the negative; NaN where none.
      translation: float32 `[sources]`, of the source and its nearest translation.
      left_out: targets that would have been chosen, by reason: `translation` if known to be one,
        `near_target` and `near_source` as `choose` says.
    """

    targets: np.ndarray
    similarities: np.ndarray
    translation: np.ndarray
    left_out: dict[str, int]


def choose(
    pool: Pool,
    sources: np.ndarray,
    targets: np.ndarray,
    *,
    count: int,
    max_similarity: float,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Negatives:
    """Returns the `count` nearest targets of each source that do not seem to translate it.

    Left out are known translations (`pool.translations`) and what is likely one: a target whose
    similarity to one of the source's targets is more than `max_similarity` (`near_target`), and one
    that is paired with a source so near to this one (`near_source`).

    Args:
      pool: the texts and pairs.
      sources: float32 `[sources, dim]`, unit rows: the embeddings of `pool.sources`.
      targets: float32 `[targets, dim]`, likewise.
      count: of negatives a source.
      max_similarity: a cosine; 1 leaves out known translations only.
      on_progress: called with the number of sources that are done since the last call.
    """
    search = _Search(pool, sources, targets, max_similarity)
    found = Negatives(
        np.full([len(sources), count], -1),
        np.full([len(sources), count], np.nan, np.float32),
        search.similarity_of_translations(),
        {"translation": 0, "near_target": 0, "near_source": 0},
    )
    pending, depth = np.arange(len(sources)), count * _LOOK_AT
    deepest = min(_MOST_LOOKED_AT, len(targets))
    while len(pending):
        depth = min(depth, deepest)
        short = []
        size = search.rows_at_once(depth)
        for start in range(0, len(pending), size):
            rows = pending[start : start + size]
            done = search.fill(found, rows, depth, last=depth == deepest)
            short.append(rows[~done])
            on_progress(int(done.sum()))
        pending, depth = np.concatenate(short), depth * 4
    return found


class _Search:
    def __init__(self, pool: Pool, sources, targets, max_similarity: float) -> None:
        links = pool.links()
        self._sources, self._targets = sources, targets
        self._all_targets = tf.constant(targets)
        self._max_similarity = max_similarity
        self._targets_of = partners(links)
        self._sources_of = partners(sparse.csr_array(links.T))
        known = translations(links).tocoo()
        self._known = np.sort(known.row.astype(np.int64) * len(targets) + known.col)

    def rows_at_once(self, depth: int) -> int:
        """The sources whose similarities, and the vectors of what they find, fit the memory."""
        vectors = depth * self._sources_of.shape[1] * self._targets.shape[1]
        return max(1, _BYTES_AT_ONCE // (4 * max(len(self._targets), vectors)))

    def similarity_of_translations(self) -> np.ndarray:
        rows = np.arange(len(self._sources))
        size = self.rows_at_once(1)
        parts = [
            _nearest(self._sources[some], self._targets, self._targets_of[some])
            for some in np.split(rows, range(size, len(rows), size))
        ]
        return np.concatenate(parts)

    def fill(self, found: Negatives, rows: np.ndarray, depth: int, *, last: bool) -> np.ndarray:
        """Chooses among the `depth` nearest targets; returns bool `[rows]`: which are done.

        Those are done that have all negatives, and all if it is the last time. Only then the
        reasons of what is left out are counted, so once a source.
        """
        count = found.targets.shape[1]
        values, nearest = (
            result.numpy() for result in _top(self._sources[rows], self._all_targets, depth)
        )
        known = self._is_known(rows, nearest)
        near_target = ~known & (self._to_targets(rows, nearest) > self._max_similarity)
        near_source = ~known & ~near_target
        near_source &= self._to_sources(rows, nearest) > self._max_similarity
        good = ~(known | near_target | near_source)
        # Those that are good come first, in their order.
        order = np.argsort(~good, axis=1, kind="stable")[:, :count]
        is_good = np.take_along_axis(good, order, axis=1)
        chosen = np.take_along_axis(nearest, order, axis=1)
        width = order.shape[1]
        found.targets[rows, :width] = np.where(is_good, chosen, -1)
        found.similarities[rows, :width] = np.where(
            is_good, np.take_along_axis(values, order, axis=1), np.nan
        )
        done = (good.sum(axis=1) >= count) | last
        wanted = (np.cumsum(good, axis=1) < count) & done[:, np.newaxis]
        for reason, left_out in (
            ("translation", known),
            ("near_target", near_target),
            ("near_source", near_source),
        ):
            found.left_out[reason] += int((left_out & wanted).sum())
        return done

    def _is_known(self, rows: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        pairs = rows[:, np.newaxis] * len(self._targets) + nearest
        places = np.searchsorted(self._known, pairs)
        return self._known[np.minimum(places, len(self._known) - 1)] == pairs

    def _to_targets(self, rows: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """Similarity of what was found to the nearest of the source's own targets."""
        own = self._targets_of[rows]
        similarities = self._targets[nearest] @ np.swapaxes(self._targets[own], 1, 2)
        return np.where(own[:, np.newaxis] < 0, -1.0, similarities).max(axis=2)

    def _to_sources(self, rows: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """Similarity of the source to the nearest of those paired with what was found."""
        theirs = self._sources_of[nearest]
        queries = self._sources[rows][:, np.newaxis, :, np.newaxis]
        similarities = (self._sources[theirs] @ queries)[..., 0]
        return np.where(theirs < 0, -1.0, similarities).max(axis=2)


@tf.function(reduce_retracing=True)
def _top(queries: tf.Tensor, candidates: tf.Tensor, depth: int):
    return tf.math.top_k(tf.matmul(queries, candidates, transpose_b=True), depth)


def _nearest(queries: np.ndarray, candidates: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Returns float32 `[n]`: of each query to the nearest of its members, places or -1."""
    similarities = np.einsum("nd,npd->np", queries, candidates[members])
    return np.where(members < 0, -1.0, similarities).max(axis=1).astype(np.float32)
