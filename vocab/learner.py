"""Learns a WordPiece vocabulary from word counts.

The result equals TF Text's `wordpiece_tokenizer_learner_lib.learn`, token for token, in much less
time.

The algorithm searches for the count threshold that gives a vocabulary of about the requested size.
For each threshold it runs a few iterations. Each splits all words with the pieces found so far,
then counts every piece of text that begins where a split piece begins, and keeps it if its count
reaches the threshold.

TF Text counts each candidate at all its occurrences and then, from the longest to the shortest,
subtracts a candidate's adjusted count from all of its prefixes, whether the candidate is kept or
not. So the occurrences raw(x) are the sum of the adjusted counts adj over x and all its
extensions. The same holds for each x + c, where c is one more character, so

    adj(x) = raw(x) - sum over c of raw(x + c)

which is the number of occurrences of x that no character follows: those at the END of a word.
So only the suffixes of words need to be counted, not all substrings, and nothing is subtracted.

The distinct suffixes are indexed once (`_SuffixIndex`); a piece is then a number, and its count an
element of an array. Splitting needs the longest piece that is a prefix of the rest of a word. Both
the piece and the rest are suffixes, so this is an array too, computed for all words at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

_WordCounts = list[tuple[str, int]]

# Code points are at most 0x10FFFF. Incremented by one, because 0 ends a word, they fit in 21 bits,
# so three of them fit in a 64-bit integer.
_BITS = 21
_PACKED = 3


def learn(
    word_counts: Mapping[str, float] | Iterable[tuple[str, float]],
    vocab_size: int,
    reserved_tokens: Sequence[str],
    upper_thresh: int | None = int(1e7),
    lower_thresh: int | None = 10,
    num_iterations: int = 4,
    max_input_tokens: int | None = int(5e6),
    max_token_length: int = 50,
    max_unique_chars: int = 1000,
    slack_ratio: float = 0.05,
    include_joiner_token: bool = True,
    joiner: str = "##",
    *,
    progress: Callable[[str], None] | None = None,
) -> list[str]:
    """Returns a WordPiece vocabulary of about `vocab_size` tokens.

    The order is: the reserved tokens, the single characters by code point, then the pieces by
    descending count and, at equal counts, by code point.

    With integer counts the result equals TF Text's exactly (while their sum is below 2**63).
    Fractional counts are accepted too; there the sums may round differently.

    Args:
      word_counts: word -> number of occurrences, or pairs of them, words repeated or not. At equal
        counts, earlier words are preferred under `max_input_tokens`.
      vocab_size: the target size, in tokens. The search ends at the first threshold whose
        vocabulary has at most this size and is at most `slack_ratio` (below 0: 0) of it smaller.
        If there is none, the last threshold tried gives the result, which may be larger.
      reserved_tokens: tokens to put first. Words equal to one of them are not learned from.
      upper_thresh, lower_thresh: ends of the threshold search; None: the largest and the smallest
        count of a word.
      num_iterations: rounds of split-and-count for each threshold; with 0 the vocabulary is
        the reserved tokens and the characters.
      max_input_tokens: number of words to learn from, the most frequent first; None or -1: all.
      max_token_length: longest word to learn from, in characters (code points).
      max_unique_chars: size of the alphabet, most frequent characters first; words with other
        characters are left out.
      slack_ratio: see `vocab_size`.
      include_joiner_token: whether pieces inside a word begin with the `joiner`.
      progress: called with a short line for each threshold tried.

    Raises:
      ValueError: if there are no words, a word is not a str, `reserved_tokens` is one str, a
        number is out of range, or the words have 2**31 characters or more.
    """
    pairs = list(word_counts.items() if isinstance(word_counts, Mapping) else word_counts)
    _check_words(pairs, reserved_tokens)
    for name, value, least in [
        ("vocab_size", vocab_size, 1),
        ("num_iterations", num_iterations, 0),
        ("max_token_length", max_token_length, 1),
        ("max_unique_chars", max_unique_chars, 1),
        ("max_input_tokens", -1 if max_input_tokens is None else max_input_tokens, -1),
    ]:
        if value < least:
            raise ValueError(f"{name} is {value}; give {least} or more")
    # The search range depends on all words, including those that are filtered out. Its lower end
    # can be the larger one, if all counts are small; then one threshold is tried.
    least, most = min(count for _, count in pairs), max(count for _, count in pairs)
    lower = least if lower_thresh is None else max(least, lower_thresh)
    upper = most if upper_thresh is None else min(most, upper_thresh)
    reserved = set(reserved_tokens)
    pairs = [pair for pair in pairs if len(pair[0]) <= max_token_length and pair[0] not in reserved]
    words = _select_words(pairs, max_unique_chars, max_input_tokens)
    alphabet = sorted({char for word, _ in words for char in word})
    joiner = joiner if include_joiner_token else ""
    # With count 1, so that all words can be split.
    single = {before + char: 1 for char in alphabet for before in ("", joiner)}

    def in_order(pieces: Mapping[str, int]) -> list[str]:
        counts = {**single, **pieces}
        by_count = sorted(counts, key=lambda piece: (-counts[piece], piece))
        return list(dict.fromkeys([*reserved_tokens, *alphabet, *by_count]))

    if not words or not num_iterations:
        return in_order({})
    counter = _PieceCounter(words, joiner)
    fixed = {*reserved_tokens, *single}
    slack = max(slack_ratio * vocab_size, 0)
    while True:
        threshold = (upper + lower) // 2
        last = lower >= upper or threshold <= 1
        if not last and vocab_size - len(fixed) - counter.most_pieces(threshold) > slack:
            # Certainly too small: lower the threshold without learning at this one.
            upper = threshold - 1
            continue
        if threshold > 0:
            pieces = counter.learn_at(threshold, num_iterations)
        else:
            pieces = _all_pieces(words, num_iterations, joiner)
        size = len(fixed.union(pieces))
        if progress is not None:
            progress(f"threshold {threshold}: {size} tokens")
        missing = vocab_size - size
        if 0 <= missing <= slack or last:
            return in_order(pieces)
        lower, upper = (threshold + 1, upper) if missing < 0 else (lower, threshold - 1)


def _check_words(pairs: _WordCounts, reserved_tokens: Sequence[str]) -> None:
    if not pairs:
        raise ValueError("word_counts is empty; give at least one word with its count")
    if isinstance(reserved_tokens, str):
        raise ValueError("reserved_tokens is one str; give a list of tokens")
    for word, count in pairs:
        if not isinstance(word, str):
            raise ValueError(f"the word {word!r} is not a str; decode bytes first")
        if not 0 <= count < math.inf:  # NaN too: with it the search would never end
            raise ValueError(f"the word {word!r} has the count {count}; give 0 or more")


def _all_pieces(words: _WordCounts, num_iterations: int, joiner: str) -> dict[str, int]:
    """Returns the result of `_PieceCounter.learn_at` for a threshold of 0 or less.

    All substrings of words are then pieces in the first iteration, with count 0 if they end no
    word. So later iterations do not split the words and find only their prefixes.
    """
    pieces: dict[str, int] = {}
    inner: dict[str, int] = {}
    for word, count in words:
        for start in range(len(word) if num_iterations == 1 else 1):
            group, before = (inner, joiner) if start and joiner else (pieces, "")
            for end in range(start + 1, len(word)):
                group.setdefault(before + word[start:end], 0)
            if word:
                whole = before + word[start:]
                group[whole] = group.get(whole, 0) + count
    return {**pieces, **inner}


def _select_words(
    pairs: _WordCounts, max_unique_chars: int, max_input_tokens: int | None
) -> _WordCounts:
    """Returns the words made of the most frequent characters, most frequent words first."""
    char_counts: Counter[str] = Counter()
    for word, count in pairs:
        for char in word:
            char_counts[char] += count
    by_count = sorted(char_counts, key=lambda char: (-char_counts[char], char))
    allowed = set(by_count[:max_unique_chars])
    words = [pair for pair in pairs if allowed.issuperset(pair[0])]
    words.sort(key=lambda pair: pair[1], reverse=True)  # Stable: equal counts keep their order.
    return words if max_input_tokens in (None, -1) else words[:max_input_tokens]


class _PieceCounter:
    """Splits all words by longest match, and counts the rest of the word at each split.

    That count is the adjusted count of the rest, taken as a piece (see above). A piece that
    begins a word (initial) and one inside a word (inner) differ by the joiner. Without a joiner
    they are the same pieces, and both are counted in the same array.
    """

    def __init__(self, words: _WordCounts, joiner: str) -> None:
        # Empty words have no pieces.
        words = [pair for pair in words if pair[0]]
        # Only words that begin with the joiner can match an inner piece at their start.
        joined = [word for word, _ in words if joiner and word.startswith(joiner)]
        prefixes = {word[:end] for word in joined for end in range(len(joiner) + 1, len(word))}
        words += [(prefix, 0) for prefix in sorted(prefixes)]
        index = _index_suffixes([word for word, _ in words])
        counts = _as_array([count for _, count in words])
        self._index, self._joiner, self._word_counts = index, joiner, counts
        self._words = index.at[index.word_starts]
        self._initial = np.zeros(len(index), counts.dtype)
        np.add.at(self._initial, self._words, counts)
        self._whole, self._inner = self._initial, _count_inner(index, counts)
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

        Later iterations split where the first iteration does, so no count increases.
        """
        return len(self._sorted_counts) - int(np.searchsorted(self._sorted_counts, threshold))

    def learn_at(self, threshold: float, num_iterations: int) -> dict[str, int]:
        """Returns piece (inner ones with the joiner in front) -> adjusted count.

        The threshold, the minimum count of a piece, and the number of iterations are 1 or more.
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
        found += self._whole
        return found, found

    def _strings(self, counts: np.ndarray, threshold: float, before: str) -> dict[str, int]:
        kept, text = np.flatnonzero(counts >= threshold), self._index.text
        starts = self._index.start[kept]
        columns = (starts, starts + self._index.length[kept], counts[kept])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return {before + text[start:end]: number for start, end, number in rows}


def _as_array(counts: Sequence[float]) -> np.ndarray:
    """Returns int64 if all counts are integers whose sum fits, float64 otherwise."""
    if all(isinstance(count, int | np.integer) for count in counts) and sum(counts) < 2**63:
        return np.array(counts, np.int64)
    return np.array(counts, np.float64)


def _count_inner(index: _SuffixIndex, counts: np.ndarray) -> np.ndarray:
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


@dataclass(frozen=True)
class _SuffixIndex:
    """The distinct suffixes of some words; a suffix is a number, the empty one is 0.

    A suffix has a greater number than all of its own prefixes. Its level is the number of its
    prefixes that are suffixes; level n is `range(levels[n], levels[n + 1])`.
    """

    text: str  # The words, each followed by one character. A position is an index in it.
    word_starts: np.ndarray  # int64 `[words]`, the position of each word.
    at: np.ndarray  # int32 `[positions]`, the suffix from there to the end of its word, or 0.
    start: np.ndarray  # int32 `[suffixes]`, one of the positions of each suffix.
    length: np.ndarray  # `[suffixes]`, in characters.
    prefix: np.ndarray  # int32 `[suffixes]`, the longest shorter suffix that is its prefix.
    levels: list[int]

    def __len__(self) -> int:
        return len(self.start)

    def longest_prefix_in(self, chosen: np.ndarray) -> np.ndarray:
        """Returns for each suffix its longest prefix, or itself, in bool `[suffixes]`; or 0."""
        found = np.where(chosen, np.arange(len(self), dtype=np.int32), np.int32(0))
        for begin, end in zip(self.levels, self.levels[1:], strict=False):
            level = found[begin:end]
            np.copyto(level, found[self.prefix[begin:end]], where=level == 0)
        return found


def _index_suffixes(words: Sequence[str]) -> _SuffixIndex:
    # An empty word in front, so that the empty suffix exists even without words.
    text = "".join(f"{word}\0" for word in ("", *words))
    lengths = np.array([0, *map(len, words)], np.int64)
    if len(text) >= 2**31:
        raise ValueError(f"{len(words)} words of {len(text)} characters are too many; give fewer")
    ends = np.cumsum(lengths + 1) - 1
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32) + np.uint32(1)
    codes[ends] = 0
    # The number of characters from each position to the end of its word.
    left = np.repeat(ends, lengths + 1) - np.arange(len(codes))
    left = left.astype(np.min_scalar_type(lengths.max()))
    at = _rank_suffixes(codes, left)
    start = np.empty(at.max(initial=0) + 1, np.int32)
    start[at] = np.arange(len(at), dtype=np.int32)
    prefix = _find_prefixes(codes, start, left[start])
    order, levels = _by_level(prefix)
    number = np.empty_like(order)
    number[order] = np.arange(len(order), dtype=np.int32)
    start = start[order]
    return _SuffixIndex(
        text, (ends - lengths)[1:], number[at], start, left[start], number[prefix[order]], levels
    )


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
    """Returns the length of the prefix that each suffix shares with the suffix before it."""
    shared = np.zeros(len(start), np.int32)
    equal = np.arange(1, len(start), dtype=np.int32)
    size = 0
    while len(equal):
        equal = equal[codes[start[equal] + size] == codes[start[equal - 1] + size]]
        size += 1
        shared[equal] = size
    return shared


def _by_level(prefix: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Returns the suffixes sorted by level (see `_SuffixIndex`), and where each level begins."""
    level = np.zeros(len(prefix), np.int32)
    have_more = np.flatnonzero(prefix)
    above = prefix[have_more]
    while len(have_more):
        level[have_more] += 1
        above = prefix[above]
        have_more, above = have_more[above > 0], above[above > 0]
    order = np.argsort(level, kind="stable").astype(np.int32)
    return order, [0, *np.cumsum(np.bincount(level)).tolist()]
