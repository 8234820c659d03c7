"""Marks in a text where something was taken out, until it is known what belongs there."""

from __future__ import annotations

import regex

# Noncharacters, which no text has. Something stood here that separates words.
GAP = "\ufdd1"

_NO_SPACES = (
    r"\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{Laoo}\p{Khmr}\p{Mymr}\p{Tibt}"
    r"\p{Block=CJK_Symbols}"
)
_BETWEEN_WORDS = regex.compile(
    rf"(?V1)(?<=[[\p{{L}}\p{{M}}\p{{N}}\p{{Pe}}.,;:!?…،؛؟۔।%]--[{_NO_SPACES}]]){GAP}+"
    rf"(?=[[\p{{L}}\p{{N}}\p{{Ps}}¿¡]--[{_NO_SPACES}]])"
)


def close_gaps(text: str) -> str:
    """Replaces each GAP by a space between words, by nothing beside white space or punctuation.

    Languages that are written without spaces get none.
    """
    return _BETWEEN_WORDS.sub(" ", text).replace(GAP, "") if GAP in text else text
