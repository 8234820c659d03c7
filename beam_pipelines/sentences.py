"""Splits paragraphs into sentences, in all languages, with the rules of `sentencex`."""

from __future__ import annotations

import regex
import sentencex

# Languages that `sentencex` splits badly: it does not know the full stops of Tibetan and Khmer,
# where "។ល។" is "etc.", and ends Burmese sentences at ၏, which also marks the genitive.
_ENDS = {
    "bo": regex.compile(r"(?<=[།༎༑!?])(?![།༎༑!?]) +"),
    "km": regex.compile(r"(?<=[។៕!?])(?!ល។|[។៕!?]) *"),
    "my": regex.compile(r"(?<=[။!?])(?![။!?]) *"),
}


def split_sentences(paragraph: str, language: str) -> list[str]:
    """Returns the sentences, none of them empty, without surrounding white space.

    Thai and Lao end sentences with a space, which also separates clauses, so their paragraphs are
    not split.

    Args:
      paragraph: text without line breaks.
      language: the paper's code; for any other, the rules of English apply.
    """
    if language in _ENDS:
        pieces = _ENDS[language].split(paragraph)
    else:
        pieces = sentencex.segment(language, paragraph)
    stripped = (piece.strip() for piece in pieces)
    return [piece for piece in stripped if piece]
