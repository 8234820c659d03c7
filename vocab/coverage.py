"""Measures how well a vocabulary covers the text of each language.

LaBSE's paper (arXiv 2007.01852) tests the model on languages for which it has no training data. How
well that works depends first on the vocabulary: text that becomes `[UNK]` is lost before the
encoder sees it, and text cut into many pieces uses up the encoder's length.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass

from vocab.wordpiece import UNKNOWN, WordPiece

_CLS_AND_SEP = 2


@dataclass
class Coverage:
    """The counts of one language, and rates calculated from them; nan if there is nothing to share.

    Characters are code points of words: spaces and other characters that divide words are not
    counted. An unknown word is one token, `[UNK]`. Tokens are without `[CLS]` and `[SEP]`.
    """

    sentences: int = 0  # Texts with at least one word.
    words: int = 0
    unknown_words: int = 0  # Words that became `[UNK]`, including those over the byte limit.
    too_long_words: int = 0  # Words over the byte limit.
    tokens: int = 0
    characters: int = 0  # In all words.
    unknown_characters: int = 0  # In unknown words.
    truncated_sentences: int = 0  # Over the length limit, including `[CLS]` and `[SEP]`.

    @property
    def unknown_rate(self) -> float:
        """`[UNK]` as a share of all tokens."""
        return _ratio(self.unknown_words, self.tokens)

    @property
    def lost_rate(self) -> float:
        """Characters of unknown words, of all: one `[UNK]` can be half of a Thai sentence."""
        return _ratio(self.unknown_characters, self.characters)

    @property
    def too_long_rate(self) -> float:
        return _ratio(self.too_long_words, self.words)

    @property
    def characters_per_token(self) -> float:
        """Without `[UNK]`, which stands for a word of any length."""
        known_characters = self.characters - self.unknown_characters
        return _ratio(known_characters, self.tokens - self.unknown_words)

    @property
    def tokens_per_sentence(self) -> float:
        return _ratio(self.tokens, self.sentences)

    @property
    def truncated_rate(self) -> float:
        return _ratio(self.truncated_sentences, self.sentences)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def add_up(parts: Iterable[Coverage]) -> Coverage:
    """Returns the sums of all counts."""
    rows = [dataclasses.astuple(part) for part in parts]
    return Coverage(*map(sum, zip(*rows, strict=True)))


class CoverageMeter:
    """Counts texts one at a time; memory does not grow with the text.

    Attributes:
      languages: language -> its counts, in order of first appearance. Any string names a language.
        Languages without a word so far are left out.
    """

    def __init__(self, wordpiece: WordPiece, *, max_length: int = 128) -> None:
        """`max_length` is of a sentence, in tokens, including `[CLS]` and `[SEP]`; 3 or more."""
        if max_length <= _CLS_AND_SEP:
            raise ValueError(f"max_length is {max_length}; give 3 or more")
        self._wordpiece = wordpiece
        self._max_tokens = max_length - _CLS_AND_SEP
        self.languages: dict[str, Coverage] = {}

    def add(self, language: str, text: str) -> None:
        """Counts one sentence; a text without words, such as a blank line, is ignored."""
        words = self._wordpiece.words(text)
        if not words:
            return
        counts = self.languages.setdefault(language, Coverage())
        tokens = 0
        for word in words:
            pieces = self._wordpiece.split(word)
            tokens += len(pieces)
            counts.characters += len(word)
            if pieces == (UNKNOWN,):
                counts.unknown_words += 1
                counts.unknown_characters += len(word)
                counts.too_long_words += self._wordpiece.is_too_long(word)
        counts.sentences += 1
        counts.words += len(words)
        counts.tokens += tokens
        counts.truncated_sentences += tokens > self._max_tokens
