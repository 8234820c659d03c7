"""Counts the pieces of words: splits all words by longest match, in several iterations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vocab.suffix_index import SuffixIndex, index_suffixes

WordCounts = list[tuple[str, int]]


class PieceCounter:
    """Splits all words by longest match, and counts the rest of the word at each split.

    That count is the adjusted count of the rest, taken as a piece (see `learner`). A piece that
    begins a word (initial) and one inside a word (inner) differ by the joiner. Without a joiner
    they are the same pieces, and both are counted in the same array.
    """

    def __init__(self, words: WordCounts, joiner: str) -> None:
        # Empty words have no pieces.
        words = [pair for pair in words if pair[0]]
        words += _joined_prefixes(words, joiner)
        index = index_suffixes([word for word, _ in words])
        counts = _as_array([count for _, count in words])
        self._index = index
        self._joiner = joiner
        self._word_counts = counts
        self._words = index.at[index.word_starts]
        self._initial = _sum_at(self._words, counts, len(index))
        self._inner = _count_inner(index, counts)
        if not joiner:
            self._initial = self._inner = self._initial + self._inner
        # A word "##a" and the piece "a" inside a word are the same token.
        clashes = [bool(joiner) and word.startswith(joiner) and word != joiner for word, _ in words]
        clashing = index.word_starts[np.flatnonzero(clashes)]
        self._clash_initial = index.at[clashing]
        self._clash_inner = index.at[clashing + len(joiner)]
        groups = [self._initial, self._inner] if joiner else [self._inner]
        self._sorted_counts = np.sort(np.concatenate(groups))

    def most_pieces(self, threshold: float) -> int:
        """Returns an upper bound on the pieces of `learn_at`, for a threshold of 1 or more.

        Splits of later iterations start where those of the first one do, so no count increases.
        """
        return len(self._sorted_counts) - int(np.searchsorted(self._sorted_counts, threshold))

    def learn_at(self, threshold: float, num_iterations: int) -> dict[str, int]:
        """Returns piece (inner ones with the joiner in front) -> adjusted count.

        Args:
          threshold: 1 or more; the minimum count of a piece.
          num_iterations: 1 or more.
        """
        initial, inner = self._initial, self._inner
        for _ in range(num_iterations - 1):
            initial, inner = self._count_splits(initial >= threshold, inner >= threshold)
        pieces = self._strings(initial, threshold, "")
        # TF Text goes from long to short (not counting the joiner) and overwrites, so if an initial
        # and an inner piece are the same token, the inner one wins.
        pieces.update(self._strings(inner, threshold, self._joiner))
        return pieces

    def _count_splits(
        self, initial: np.ndarray, inner: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Splits all words with the given pieces; returns the counts of the suffixes at splits."""
        index = self._index
        clash_initial, clash_inner = self._clash_initial, self._clash_inner
        usable = initial.copy()
        usable[clash_initial] |= inner[clash_inner] | (index.length[clash_inner] == 1)
        inner = inner.copy()
        inner[clash_inner] |= initial[clash_initial]
        # Single characters are always pieces, so a match has at least one character.
        first = np.maximum(index.length[index.longest_prefix_in(usable)[self._words]], 1)
        matched = np.maximum(index.length[index.longest_prefix_in(inner)], 1)

        found = np.zeros_like(self._inner)
        rest, counts = index.at[index.word_starts + first], self._word_counts
        while len(rest):
            inside = np.flatnonzero(rest)
            rest, counts = rest[inside], counts[inside]
            np.add.at(found, rest, counts)
            rest = index.at[index.start[rest] + matched[rest]]
        if self._joiner:
            return self._initial, found
        found += _sum_at(self._words, self._word_counts, len(index))
        return found, found

    def _strings(self, counts: np.ndarray, threshold: float, before: str) -> dict[str, int]:
        kept = np.flatnonzero(counts >= threshold)
        text, start = self._index.text, self._index.start[kept].tolist()
        ends = (self._index.start[kept] + self._index.length[kept]).tolist()
        numbers = counts[kept].tolist()
        return {
            before + text[a:b]: number for a, b, number in zip(start, ends, numbers, strict=True)
        }


def _joined_prefixes(words: WordCounts, joiner: str) -> WordCounts:
    """Returns, with count 0, the prefixes of words that begin with the joiner.

    Only these can match an inner piece at the start of a word.
    """
    if not joiner:
        return []
    joined = [word for word, _ in words if word.startswith(joiner)]
    prefixes = {word[:end] for word in joined for end in range(len(joiner) + 1, len(word))}
    return [(prefix, 0) for prefix in sorted(prefixes)]


def _as_array(counts: Sequence[float]) -> np.ndarray:
    """Returns int64 if all counts are integers whose sum fits, float64 otherwise."""
    if all(isinstance(count, int | np.integer) for count in counts) and sum(counts) < 2**63:
        return np.array(counts, np.int64)
    return np.array(counts, np.float64)


def _sum_at(places: np.ndarray, counts: np.ndarray, size: int) -> np.ndarray:
    """Returns `[size]`, the sum of the counts at each place."""
    sums = np.zeros(size, counts.dtype)
    np.add.at(sums, places, counts)
    return sums


def _count_inner(index: SuffixIndex, counts: np.ndarray) -> np.ndarray:
    """Counts each suffix at all its occurrences inside words."""
    sums = np.zeros(len(index), counts.dtype)
    starts = index.word_starts
    while len(starts):
        starts = starts + 1
        rest = index.at[starts]
        inside = np.flatnonzero(rest)
        starts, counts = starts[inside], counts[inside]
        np.add.at(sums, rest[inside], counts)
    return sums
