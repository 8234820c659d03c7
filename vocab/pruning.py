"""Finds the pieces of a vocabulary that a set of languages needs.

A word is still split into the same pieces if all of them are kept: WordPiece takes the longest
match, and removing other pieces does not create a longer one. A word that loses a piece is spelled
with shorter ones, down to single characters, which are kept as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import regex

from vocab.wordpiece import JOINER, UNKNOWN
from vocab.wordpiece_file import RESERVED_TOKENS

# Characters that all scripts share: digits, punctuation, emoji, combining marks.
_COMMON = r"\p{Script=Common}\p{Script=Inherited}"


def pieces_of_scripts(tokens: Iterable[str], scripts: Iterable[str]) -> set[str]:
    """Returns the tokens with only characters of these scripts or that all scripts share.

    Args:
      tokens: of a vocabulary.
      scripts: names or ISO 15924 codes in Unicode's property Script, such as `Latn`.
    """
    names = "".join(rf"\p{{Script={script}}}" for script in scripts)
    written = regex.compile(rf"[{_COMMON}{names}]+")
    return {token for token in tokens if written.fullmatch(_letters(token))}


def kept_ids(tokens: Sequence[str], pieces: Collection[str]) -> list[int]:
    """Returns the ids to keep, in ascending order: a token's new id is its index in the list.

    These are the ids of the reserved tokens, of `pieces`, and of every single character of these,
    at the start of a word and inside one, that the vocabulary `tokens` has.
    """
    characters = {character for piece in pieces for character in _letters(piece)}
    kept = {UNKNOWN, *RESERVED_TOKENS, *pieces, *characters}
    kept.update(JOINER + character for character in characters)
    return [number for number, token in enumerate(tokens) if token in kept]


def _letters(token: str) -> str:
    return token.removeprefix(JOINER) or token
