"""Measures how well a vocabulary covers the text of each language.

LaBSE's paper (arXiv 2007.01852) tries the model on languages that it has no training data for. What
it can do there begins with its vocabulary: text that becomes `[UNK]` is lost before the encoder
sees it, and text cut into many pieces fills the encoder's length.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass

from vocab.wordpiece import UNKNOWN, WordPiece

_UNKNOWN_WORD = (UNKNOWN,)
_CLS_AND_SEP = 2


@dataclass
class Coverage:
    """What was counted in one language, and the rates that follow.

    Characters are code points of words: spaces and what else divides words is not counted. A word
    that is unknown is one token, `[UNK]`, so that unknown words and unknown tokens are one number.

    Attributes:
      sentences: texts with at least one word.
      words: those of `WordPiece.words`.
      unknown_words: words that became `[UNK]`, those over the byte limit among them.
      too_long_words: words over the byte limit.
      tokens: without `[CLS]` and `[SEP]`.
      characters: of all words.
      unknown_characters: of the unknown words.
      truncated_sentences: those over the length limit, `[CLS]` and `[SEP]` counted.
    """

    sentences: int = 0
    words: int = 0
    unknown_words: int = 0
    too_long_words: int = 0
    tokens: int = 0
    characters: int = 0
    unknown_characters: int = 0
    truncated_sentences: int = 0

    @property
    def unknown_rate(self) -> float:
        """`[UNK]` as a share of all tokens, 0 to 1."""
        return _ratio(self.unknown_words, self.tokens)

    @property
    def lost_rate(self) -> float:
        """Characters inside words that became `[UNK]`, as a share of all characters, 0 to 1.

        Where words are written without spaces this is the rate to look at: one `[UNK]` can be half
        of the sentence.
        """
        return _ratio(self.unknown_characters, self.characters)

    @property
    def too_long_rate(self) -> float:
        """Words over the byte limit as a share of all words, 0 to 1."""
        return _ratio(self.too_long_words, self.words)

    @property
    def characters_per_token(self) -> float:
        """Characters a token; `[UNK]`, which stands for a word of any length, is left out."""
        known_characters = self.characters - self.unknown_characters
        return _ratio(known_characters, self.tokens - self.unknown_words)

    @property
    def tokens_per_sentence(self) -> float:
        """Tokens a sentence, without `[CLS]` and `[SEP]`."""
        return _ratio(self.tokens, self.sentences)

    @property
    def truncated_rate(self) -> float:
        """Sentences over the length limit as a share of all, 0 to 1."""
        return _ratio(self.truncated_sentences, self.sentences)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def add_up(parts: Iterable[Coverage]) -> Coverage:
    """Returns the sums of all counts."""
    names = [field.name for field in dataclasses.fields(Coverage)]
    parts = list(parts)
    return Coverage(**{name: sum(getattr(part, name) for part in parts) for name in names})


class CoverageMeter:
    """Counts texts as they come; memory does not grow with the text.

    Attributes:
      languages: language -> what was counted, in order of first appearance. Any string names a
        language. One without a word so far is not there.
    """

    def __init__(self, wordpiece: WordPiece, *, max_length: int = 128) -> None:
        """Prepares to count.

        Args:
          wordpiece: the vocabulary to measure, and its byte limit.
          max_length: of a sentence, in tokens, `[CLS]` and `[SEP]` counted.

        Raises:
          ValueError: if `max_length` leaves no room for a token.
        """
        if max_length <= _CLS_AND_SEP:
            raise ValueError(f"max_length is {max_length}; give 3 or more")
        self._wordpiece = wordpiece
        self._max_tokens = max_length - _CLS_AND_SEP
        self.languages: dict[str, Coverage] = {}

    def add(self, language: str, text: str) -> None:
        """Counts one sentence; a text without words, a blank line for one, is none."""
        words = self._wordpiece.words(text)
        if not words:
            return
        counts = self.languages.setdefault(language, Coverage())
        tokens = 0
        for word in words:
            pieces = self._wordpiece.split(word)
            tokens += len(pieces)
            counts.characters += len(word)
            if pieces == _UNKNOWN_WORD:
                counts.unknown_words += 1
                counts.unknown_characters += len(word)
                counts.too_long_words += self._wordpiece.is_too_long(word)
        counts.sentences += 1
        counts.words += len(words)
        counts.tokens += tokens
        counts.truncated_sentences += tokens > self._max_tokens
