"""Counts the word endings that compete for a place in the vocabulary.

The published algorithm counts, for every allowed start position in every word, all substrings
from there. Then, from the longest substring to the shortest, it takes the remaining count of each
away from all its prefixes. Seen as a tree of prefixes, a substring's first count is the number of
times that the tree is walked through it, and the counts taken away are those of the walks that go
on. What remains is the number of walks that stop right there, and a walk stops at the end of a
word. So one may as well count only what runs from an allowed start to the end of a word, and never
make the table of substrings at all.

The allowed starts are those of the pieces when the word is split greedily, each time taking the
longest known piece. How the rest of a word is split depends only on the text of that rest, so a
rest that many words share is split once: its count is passed on to what remains after its first
piece, from the longest rests to the shortest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

Counts = dict[str, int]


class Endings(NamedTuple):
    """Weighted number of times that a text runs from an allowed start to the end of a word.

    Attributes:
        whole: those that start where the word starts: the words themselves.
        rest: those that start further on, without joiner. Without a joiner in use the two kinds
            are one, and `rest` has the whole words too.
    """

    whole: Counts
    rest: Counts


class Pieces:
    """A set of pieces of text that finds the longest one at the start of a text."""

    def __init__(self, pieces: Collection[str] = ()) -> None:
        self._pieces = pieces
        self._longest = max(map(len, pieces), default=0)

    def match(self, text: str) -> int:
        """Returns the length in characters of the longest piece that `text` starts with, or 1.

        Single characters need not be looked up: every one in the words is always a piece.
        """
        for end in range(min(len(text), self._longest), 1, -1):
            if text[:end] in self._pieces:
                return end
        return 1


def count_endings(
    words: Iterable[tuple[str, int]], first: Pieces, further: Pieces, separate: bool
) -> Endings:
    """Counts the endings of `words` from the starts of their greedily matched pieces.

    Args:
        words: pairs of word and count; a word may come more than once.
        first: the pieces allowed at the start of a word.
        further: the pieces allowed later in a word, without joiner. With no pieces in both, every
            position is an allowed start.
        separate: count words and rests apart, as is right if a joiner marks the rests. Otherwise
            the pieces in `first` and `further` should be the same.
    """
    whole: Counts = {}
    for word, count in words:
        if word:
            whole[word] = whole.get(word, 0) + count
    # by_length[n] has the rests of n characters. A rest passes its count on to shorter rests
    # only, so from the longest to the shortest each is complete when its turn comes.
    by_length: list[Counts] = [{} for _ in range(max(map(len, whole), default=0) + 1)]
    if separate:
        _pass_on(whole, first, by_length)
    else:
        for word, count in whole.items():
            by_length[len(word)][word] = count
        whole = {}
    for rests in reversed(by_length):
        _pass_on(rests, further, by_length)
    return Endings(whole, {rest: count for rests in by_length for rest, count in rests.items()})


def _pass_on(texts: Counts, pieces: Pieces, by_length: list[Counts]) -> None:
    """Adds each text's count to the rest of it that follows its first piece."""
    for text, count in texts.items():
        rest = text[pieces.match(text) :]
        if rest:
            rests = by_length[len(rest)]
            rests[rest] = rests.get(rest, 0) + count


def at_least(counts: Counts, threshold: float) -> Counts:
    """Returns the endings with a count of `threshold` or more.

    At a threshold of 0 or below the published algorithm also keeps the substrings that have
    nothing left, which are all prefixes of the endings; they come with the count 0.
    """
    kept = {text: count for text, count in counts.items() if count >= threshold}
    if threshold <= 0:
        for text in counts:
            for end in range(1, len(text)):
                kept.setdefault(text[:end], 0)
    return kept
