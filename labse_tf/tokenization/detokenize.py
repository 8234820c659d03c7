"""Text from WordPieces, for translations.

WordPieces do not tell where spaces were: words are split at punctuation, which belongs to the word
before or after it, and Chinese characters are words. This follows the rules of the scripts; what it
cannot know (a hyphen between spaces) it writes the more frequent way.
"""

from __future__ import annotations

from collections.abc import Iterable

import regex

# Scripts that put no space between words, and their punctuation.
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}、。「」『』〈〉《》【】（），！？：；・ー]"
)
_CLOSING = regex.compile(r"[\p{Pe}\p{Pf}.,!?;:%…،؛؟।॥·။՞։]+")
_OPENING = regex.compile(r"[\p{Ps}\p{Pi}¿¡#@]+")
_JOINING = ("'", "’", "-", "/")
_QUOTE = '"'
# Within numbers: 3.14, 10,000, 12:30.
_IN_NUMBERS = (".", ",", ":")


def join_wordpieces(tokens: Iterable[str]) -> str:
    """Returns the text of a sequence of WordPieces, without special tokens."""
    words: list[str] = []
    for token in tokens:
        if token.startswith("##") and words:
            words[-1] += token[2:]
        else:
            words.append(token.removeprefix("##") or token)
    return _join(words)


def _join(words: list[str]) -> str:
    text, joined, quotes = "", True, 0
    for place, word in enumerate(words):
        # The first of two quotation marks opens.
        opens_quote = word == _QUOTE and quotes % 2 == 0
        quotes += word == _QUOTE
        closes = bool(_CLOSING.fullmatch(word)) or (word == _QUOTE and not opens_quote)
        unspaced = bool(text) and bool(_UNSPACED.match(text[-1]) and _UNSPACED.match(word))
        if not (joined or closes or unspaced or word in _JOINING):
            text += " "
        text += word
        joined = word in _JOINING or opens_quote or bool(_OPENING.fullmatch(word))
        around = [*words[max(0, place - 1) : place], *words[place + 1 : place + 2]]
        joined |= word in _IN_NUMBERS and len(around) == 2 and all(map(str.isdecimal, around))
    return text
