"""Spelling a token with other tokens."""

from __future__ import annotations

from collections.abc import Mapping

JOINER = "##"


def spell(
    token: str, ids: Mapping[str, int], *, most_characters: int | None = None
) -> list[int] | None:
    """Returns the ids of the longest tokens from the left, as WordPiece splits a word.

    Args:
      token: begins with `##` if it is inside a word.
      ids: of the tokens to spell it with.
      most_characters: longer tokens are not used, `##` aside; None: all are.

    Returns:
      At least one id; None if the token cannot be spelled.
    """
    joiner = JOINER if token.startswith(JOINER) else ""
    rest, found = token.removeprefix(JOINER), []
    while rest:
        for end in range(min(len(rest), most_characters or len(rest)), 0, -1):
            if (piece := joiner + rest[:end]) in ids:
                found.append(ids[piece])
                rest, joiner = rest[end:], JOINER
                break
        else:
            return None
    return found or None
