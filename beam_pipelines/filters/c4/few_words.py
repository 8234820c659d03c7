"""Drops lines with few words (C4, section 2.2: fewer than 5)."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from beam_pipelines.filters import LINES, Option, Use
from beam_pipelines.records.records import Sentence
from labse_tf.files.record_kinds import MONOLINGUAL

# Scripts that do not separate words -> characters per word, about the mean in running text.
_CHARACTERS_PER_WORD = (
    (regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]"), 2),
    (regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"), 5),
)
_UNSEPARATED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
)
# Tibetan separates syllables; a word has about two.
_TIBETAN_SYLLABLE = regex.compile(r"[\p{Tibetan}--[\u0f0b-\u0f14]]+", regex.V1)
_SYLLABLES_PER_WORD = 2
_LETTER = regex.compile(r"[\p{L}\p{M}\p{N}]")


class FewWords:
    """Score: approximate number of words.

    A word is text between spaces that has a letter or digit. In scripts without spaces, 2 Chinese
    or Japanese characters, 5 Thai, Lao, Khmer or Burmese characters (including marks) or 2 Tibetan
    syllables count as a word.

    >>> FewWords().score([Sentence("See you - tomorrow", "en"), Sentence("今天天气很好", "zh")])
    [3, 3]
    """

    name = "few_words"
    uses = {
        MONOLINGUAL: Use(
            order=20,
            stage=LINES,
            threshold=Option(
                "--min-words",
                "of C4: drop lines with fewer words",
                "N",
                type=int,
            ),
        )
    }

    def __init__(self, threshold: int = 5) -> None:
        self.threshold = threshold

    def score(self, records: Sequence[Sentence]) -> list[int]:
        return [count_words(record.text) for record in records]

    def accept(self, score: int) -> bool:
        return score >= self.threshold


def count_words(text: str) -> int:
    """Returns the approximate number of words of a text, in any script."""
    unseparated = 0.0
    if not text.isascii() and _UNSEPARATED.search(text):
        for characters, per_word in _CHARACTERS_PER_WORD:
            unseparated += len(characters.findall(text)) / per_word
        unseparated += len(_TIBETAN_SYLLABLE.findall(text)) / _SYLLABLES_PER_WORD
        text = _UNSEPARATED.sub(" ", text)
    return sum(1 for word in text.split() if _LETTER.search(word)) + int(unseparated)
