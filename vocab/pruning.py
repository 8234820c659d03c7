"""Finds the pieces of a vocabulary that a set of languages needs.

A word is still split into the same pieces if all of them are kept: WordPiece takes the longest
match, and removing other pieces does not create a longer one. A word that loses a piece is spelled
with shorter ones, down to single characters, which are kept as well.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence

import regex

from vocab.wordpiece import JOINER, UNKNOWN, WordPiece
from vocab.wordpiece_file import RESERVED_TOKENS

# Characters that all scripts share: digits, punctuation, emoji, combining marks.
_COMMON = r"\p{Script=Common}\p{Script=Inherited}"
# A share of the texts, up to a maximum number, is held out to measure how many similar texts would
# not keep their pieces.
_HELD_OUT_SHARE, _MOST_HELD_OUT = 0.1, 10_000


def pieces_of_scripts(tokens: Iterable[str], scripts: Iterable[str]) -> set[str]:
    """Returns the tokens with only characters of these scripts or that all scripts share.

    Args:
      tokens: of a vocabulary.
      scripts: names or ISO 15924 codes in Unicode's property Script, such as `Latn`.
    """
    names = "".join(rf"\p{{Script={script}}}" for script in scripts)
    written = regex.compile(rf"[{_COMMON}{names}]+")
    return {token for token in tokens if written.fullmatch(_letters(token))}


class NeededPieces:
    """Collects the pieces that texts need: `pieces` of the `texts` so far."""

    def __init__(self, wordpiece: WordPiece) -> None:
        self.pieces: set[str] = set()
        self.texts = 0
        self._wordpiece = wordpiece
        self._of_others: set[str] = set()
        self._drawn = 0
        self._held_out: list[frozenset[str]] = []
        self._random = random.Random(0)

    def add(self, text: str) -> None:
        """Adds the pieces of a text."""
        pieces = frozenset(self._wordpiece.tokenize(text))
        self.texts += 1
        self.pieces |= pieces
        if self._random.random() < _HELD_OUT_SHARE:
            pieces = self._hold_out(pieces)
        self._of_others |= pieces

    def _hold_out(self, pieces: frozenset[str]) -> frozenset[str]:
        """Holds out a text; returns the pieces of the text it replaces (Vitter's algorithm R)."""
        self._drawn += 1
        if len(self._held_out) < _MOST_HELD_OUT:
            self._held_out.append(pieces)
            return frozenset()
        place = self._random.randrange(self._drawn)
        if place < _MOST_HELD_OUT:
            self._held_out[place], pieces = pieces, self._held_out[place]
        return pieces

    def changed_share(self) -> float:
        """Returns the share of similar texts that would not keep their pieces, 0 to 1.

        Measured on a random tenth of the texts, at most 10,000, with the pieces that the others
        need; nan if none was held out.
        """
        changed = [not pieces <= self._of_others for pieces in self._held_out]
        return sum(changed) / len(changed) if changed else float("nan")


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
