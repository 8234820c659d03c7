"""Chooses the counted words that a vocabulary is learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

WordCounts = list[tuple[str, int]]


def as_pairs(word_counts: Mapping[str, int] | Iterable[tuple[str, int]]) -> WordCounts:
    """Returns the words and their counts as a list of pairs, in the order given.

    Raises:
        ValueError: there are no words, or a count is below zero.
        TypeError: a word is not a `str`.
    """
    pairs = list(word_counts.items() if isinstance(word_counts, Mapping) else word_counts)
    if not pairs:
        raise ValueError("word_counts is empty; give at least one word with its count")
    for word, count in pairs:
        if not isinstance(word, str):
            raise TypeError(f"the word {word!r} is not a str; decode it from UTF-8 first")
        if not count >= 0:  # also refuses NaN
            raise ValueError(f"the word {word!r} has the count {count}; counts start at 0")
    return pairs


def select_words(
    pairs: WordCounts,
    reserved_tokens: Collection[str],
    max_input_tokens: int | None,
    max_token_length: int,
    max_unique_chars: int,
) -> WordCounts:
    """Returns the words to learn from, the most frequent first, ties in the order given.

    Left out are reserved tokens, words longer than `max_token_length` characters, words with a
    character outside the `max_unique_chars` most frequent ones, and the rarest words beyond
    `max_input_tokens` (None or -1: no such limit).
    """
    reserved = frozenset(reserved_tokens)
    words = [
        (word, count)
        for word, count in pairs
        if len(word) <= max_token_length and word not in reserved
    ]
    allowed = _frequent_characters(words, max_unique_chars)
    words = [(word, count) for word, count in words if allowed.issuperset(word)]
    words.sort(key=lambda pair: pair[1], reverse=True)
    unlimited = max_input_tokens is None or max_input_tokens == -1
    return words if unlimited else words[:max_input_tokens]


def _frequent_characters(words: WordCounts, limit: int) -> set[str]:
    """The `limit` most frequent characters; of equally frequent ones the lowest code points."""
    totals: Counter[str] = Counter()
    for word, count in words:
        for character in word:
            totals[character] += count
    return set(sorted(totals, key=lambda character: (-totals[character], character))[:limit])
