"""Counts the words of much text in bounded memory: what a worker does before anything is shuffled.

All spaces of Unicode divide words here. So no piece is learned that has one, which other programs
would read from the vocabulary's file as another piece or as none.

Text repeats itself: it is cut at ASCII spaces first, which always divide words, and only distinct
pieces between spaces are split into words. That halves the time; the counts are the same.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence

from vocab.basic_tokenizer import plain_spaces, split_words

# Text held before it is split, in characters: at most 80 MB, where nothing repeats.
_CHARACTERS_HELD = 20_000_000
# Pieces split at once. Scripts without spaces have whole sentences for pieces.
_PIECES_AT_ONCE = 1000


class WordCounter:
    """Word counts by language; `len()` is the number of distinct words counted so far."""

    def __init__(self) -> None:
        self._clear()

    def __len__(self) -> int:
        return sum(map(len, self._words.values()))

    def add(self, language: str, texts: Sequence[str]) -> None:
        """Counts the words of texts, each of which begins and ends at the end of a word."""
        text = plain_spaces(" ".join(texts))
        self._pieces[language].update(text.split(" "))
        self._characters += len(text)
        if self._characters > _CHARACTERS_HELD:
            self._split_pieces()

    def take(self) -> dict[str, collections.Counter[str]]:
        """Returns language -> word -> count, and forgets them."""
        self._split_pieces()
        words = self._words
        self._clear()
        return words

    def _clear(self) -> None:
        self._pieces = collections.defaultdict(collections.Counter)
        self._words = collections.defaultdict(collections.Counter)
        self._characters = 0

    def _split_pieces(self) -> None:
        for language, pieces in self._pieces.items():
            words = self._words[language]
            once = []
            for piece, count in pieces.items():
                if count == 1:
                    once.append(piece)
                    continue
                for word in split_words(piece):
                    words[word] += count
            for start in range(0, len(once), _PIECES_AT_ONCE):
                words.update(split_words(" ".join(once[start : start + _PIECES_AT_ONCE])))
        self._pieces.clear()
        self._characters = 0
