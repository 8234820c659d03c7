"""All distinct suffixes of some words, and which of them are prefixes of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Code points are at most 0x10FFFF. Incremented by one, because 0 ends a word, they fit in 21 bits,
# so three of them fit in a 64-bit integer.
_BITS = 21
_PACKED = 3


@dataclass(frozen=True)
class SuffixIndex:
    """The distinct suffixes of some words; a suffix is a number, the empty one is 0.

    A suffix has a greater number than all of its own prefixes.

    Attributes:
      text: the words, each followed by one character. A position is an index in it, in characters.
      word_starts: int64 `[words]`, the position of each word.
      at: int32 `[positions]`, the suffix that runs from a position to the end of its word; 0 after
        the end of a word.
      start: int32 `[suffixes]`, one of the positions of each suffix.
      length: `[suffixes]`, in characters.
      prefix: int32 `[suffixes]`, the longest shorter suffix that is a prefix of this one.
      levels: the level of a suffix is the number of its prefixes that are suffixes; level n is
        `range(levels[n], levels[n + 1])`.
    """

    text: str
    word_starts: np.ndarray
    at: np.ndarray
    start: np.ndarray
    length: np.ndarray
    prefix: np.ndarray
    levels: list[int]

    def __len__(self) -> int:
        return len(self.start)

    def string(self, suffix: int) -> str:
        start = self.start[suffix]
        return self.text[start : start + self.length[suffix]]

    def longest_prefix_in(self, chosen: np.ndarray) -> np.ndarray:
        """Returns for each suffix its longest chosen prefix, which may be itself.

        Args:
          chosen: bool `[suffixes]`.

        Returns:
          int32 `[suffixes]`; 0 if none is chosen.
        """
        found = np.where(chosen, np.arange(len(self), dtype=np.int32), np.int32(0))
        for begin, end in zip(self.levels, self.levels[1:], strict=False):
            level = found[begin:end]
            np.copyto(level, found[self.prefix[begin:end]], where=level == 0)
        return found


def index_suffixes(words: Sequence[str]) -> SuffixIndex:
    """Builds the index of all suffixes of the words.

    Raises:
      ValueError: if the words have 2**31 characters or more, with one added per word.
    """
    # An empty word in front, so that the empty suffix exists even without words.
    text = "".join(f"{word}\0" for word in ("", *words))
    lengths = np.array([0, *map(len, words)], np.int64)
    if len(text) >= 2**31:
        raise ValueError(f"{len(words)} words of {len(text)} characters are too many; give fewer")
    ends = np.cumsum(lengths + 1) - 1
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32) + np.uint32(1)
    codes[ends] = 0
    left = _characters_left(ends, lengths)
    at = _rank_suffixes(codes, left)
    start = np.empty(at.max(initial=0) + 1, np.int32)
    start[at] = np.arange(len(at), dtype=np.int32)
    prefix = _find_prefixes(codes, start, left[start])
    order, levels = _by_level(prefix)
    number = np.empty_like(order)
    number[order] = np.arange(len(order), dtype=np.int32)
    start = start[order]
    return SuffixIndex(
        text, (ends - lengths)[1:], number[at], start, left[start], number[prefix[order]], levels
    )


def _characters_left(ends: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns for each position the number of characters from there to the end of its word."""
    dtype = np.min_scalar_type(lengths.max(initial=0))
    positions = len(lengths) + lengths.sum()
    return (np.repeat(ends, lengths + 1) - np.arange(positions)).astype(dtype)


def _rank_suffixes(codes: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Returns for each position the rank of its suffix, by code points, among the distinct ones.

    By prefix doubling (Manber and Myers 1990): the ranks by the first 2n characters follow from
    those by the first n. A rank is the number of positions that come before, so that only the
    positions that have more characters need to be sorted again (Larsson and Sadakane 1999).
    """
    keys = np.zeros(len(codes), np.int64)
    for offset in range(_PACKED):
        inside = np.flatnonzero(left > offset)
        keys[inside] |= codes[inside + offset].astype(np.int64) << _BITS * (_PACKED - 1 - offset)
    order = np.argsort(keys)
    ranks = np.empty(len(codes), np.int32)
    ranks[order] = _first_of_run(keys[order])
    known = _PACKED
    while known < left.max():
        more = np.flatnonzero(left > known)
        keys = ranks[more].astype(np.int64) << 32 | ranks[more + known]
        order = np.argsort(keys)
        keys = keys[order]
        before = keys >> 32
        # Among suffixes that are equal so far, those that end here come first.
        ended = np.bincount(ranks[left <= known], minlength=len(ranks))
        ranks[more[order]] = before + ended[before] + _first_of_run(keys) - _first_of_run(before)
        known *= 2
    taken = np.zeros(len(ranks), np.int32)
    taken[ranks] = 1
    return (np.cumsum(taken, dtype=np.int32) - 1)[ranks]


def _first_of_run(values: np.ndarray) -> np.ndarray:
    """Returns for each place in a sorted array the first place with the same value."""
    new = np.flatnonzero(values[1:] != values[:-1]) + 1
    first = np.zeros(len(values), np.int64)
    first[new] = new
    return np.maximum.accumulate(first, out=first)


def _find_prefixes(codes: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Returns for each suffix, in rank order, the longest shorter one that is its prefix, or 0.

    Suffixes with the same first n characters are neighbours, and if one of them has only these, it
    comes first.
    """
    shared = _shared_with_previous(codes, start)
    prefix = np.zeros(len(start), np.int32)
    members = np.arange(len(start), dtype=np.int32)
    for size in range(1, int(length.max(initial=0))):
        members = members[length[members] >= size]
        heads = np.where(shared[members] < size, np.arange(len(members)), 0)
        heads = members[np.maximum.accumulate(heads)]
        longer = (length[heads] == size) & (length[members] > size)
        prefix[members[longer]] = heads[longer]
    return prefix


def _shared_with_previous(codes: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Returns the length of the prefix that each suffix shares with the one of the rank before."""
    shared = np.zeros(len(start), np.int32)
    equal = np.arange(1, len(start), dtype=np.int32)
    size = 0
    while len(equal):
        equal = equal[codes[start[equal] + size] == codes[start[equal - 1] + size]]
        size += 1
        shared[equal] = size
    return shared


def _by_level(prefix: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Returns the suffixes sorted by level (see `SuffixIndex`), and where each level begins."""
    level = np.zeros(len(prefix), np.int32)
    have_more = np.flatnonzero(prefix)
    above = prefix[have_more]
    while len(have_more):
        level[have_more] += 1
        above = prefix[above]
        have_more, above = have_more[above > 0], above[above > 0]
    order = np.argsort(level, kind="stable").astype(np.int32)
    return order, [0, *np.cumsum(np.bincount(level)).tolist()]
