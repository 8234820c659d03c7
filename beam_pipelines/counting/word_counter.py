"""Counts words in bounded memory; a worker does this before the shuffle.

Words are divided at every Unicode space. Otherwise a piece could contain one, and other programs
would read it from the vocabulary file as another piece or as none.

Text is repetitive, so it is first cut at ASCII spaces, which always divide words, and only the
distinct pieces between them are split into words. That halves the time; the counts are the same.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence

from vocab.basic_tokenizer import plain_spaces, split_words

# Text held before it is split, in characters: at most 80 MB, if nothing repeats.
_CHARACTERS_HELD = 20_000_000
# Pieces split at once. In scripts without spaces a piece is a whole sentence.
_PIECES_AT_ONCE = 1000


class WordCounter:
    """Word counts by language; `len()` is the number of distinct words counted so far."""

    def __init__(self) -> None:
        self._clear()

    def __len__(self) -> int:
        return sum(map(len, self._words.values()))

    def add(self, language: str, texts: Sequence[str]) -> None:
        """Counts the words of texts; no word spans two texts."""
        text = plain_spaces(" ".join(texts))
        self._pieces[language].update(text.split(" "))
        self._characters += len(text)
        if self._characters > _CHARACTERS_HELD:
            self._split_pieces()

    def take(self) -> dict[str, collections.Counter[str]]:
        """Returns language -> word -> count, and resets the counter."""
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
