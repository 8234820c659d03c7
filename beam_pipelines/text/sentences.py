"""Splits paragraphs into sentences, in all languages, with the rules of `sentencex`."""

from __future__ import annotations

import regex
import sentencex

# Where `sentencex` falls short: it knows no full stop of Tibetan and Khmer, where "។ល។" is "etc.",
# and ends Burmese sentences at ၏, which marks the genitive too.
_ENDS = {
    "bo": regex.compile(r"(?<=[།༎༑!?])(?![།༎༑!?]) +"),
    "km": regex.compile(r"(?<=[។៕!?])(?!ល។|[។៕!?]) *"),
    "my": regex.compile(r"(?<=[။!?])(?![။!?]) *"),
}


def split_sentences(paragraph: str, language: str) -> list[str]:
    """Returns the sentences without the white space around them; none of them is empty.

    Thai and Lao end sentences by a space, which stands between clauses too: their paragraphs come
    whole.

    Args:
      paragraph: text without line breaks.
      language: the paper's code, or any other: then by the rules of English.
    """
    if language in _ENDS:
        pieces = _ENDS[language].split(paragraph)
    else:
        pieces = sentencex.segment(language, paragraph)
    stripped = (piece.strip() for piece in pieces)
    return [piece for piece in stripped if piece]
