"""Splits words by the merges of fastBPE, as `fast applybpe` does with its vocabulary.

A word begins as its characters, the last with `</w>`. Of all pairs of neighbours the one that was
learned first is joined, wherever it occurs, until none is known (Sennrich et al. 2016, arXiv
1508.07909, algorithm 1). A piece that the vocabulary lacks is then split again into the two that it
was joined from, and so on down to characters. In text, a piece within a word ends in `@@`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines

END_OF_WORD, CONTINUED = "</w>", "@@"
# Words repeat: most of a text is looked up.
_WORDS_KEPT = 1 << 18


class FastBpe:
    """Merges, and the vocabulary that limits them.

    Attributes:
      vocabulary: the pieces, as in text.
    """

    def __init__(
        self, codes_file: str | os.PathLike[str], vocab_file: str | os.PathLike[str]
    ) -> None:
        """Reads both files.

        Args:
          codes_file: of `fast learnbpe`: lines `left right count`, the first merge first.
          vocab_file: of `fast getvocab`: lines `piece count`.

        Raises:
          InputError: if a file is missing, or a line is not like that.
        """
        pairs = [tuple(columns[:2]) for columns in _columns(codes_file, "left right count")]
        self._ranks = {pair: rank for rank, pair in reversed(list(enumerate(pairs)))}
        self._parts = {left + right: (left, right) for left, right in reversed(pairs)}
        self.vocabulary = {columns[0] for columns in _columns(vocab_file, "piece count")}
        self.split = functools.lru_cache(_WORDS_KEPT)(self._split)

    def _split(self, word: str) -> tuple[str, ...]:
        """Returns the pieces of a word without white space, as in text."""
        if not word:
            return ()
        *first, last = self._merge([*word[:-1], word[-1] + END_OF_WORD])
        pieces = [
            *(part for piece in first for part in self._known(piece, is_last=False)),
            *self._known(last, is_last=True),
        ]
        return tuple(_as_text(piece, place == len(pieces)) for place, piece in enumerate(pieces, 1))

    def _merge(self, pieces: list[str]) -> list[str]:
        while pairs := [
            pair for pair in zip(pieces, pieces[1:], strict=False) if pair in self._ranks
        ]:
            best = min(pairs, key=self._ranks.__getitem__)
            merged: list[str] = []
            place = 0
            while place < len(pieces):
                if tuple(pieces[place : place + 2]) == best:
                    merged.append("".join(best))
                    place += 2
                else:
                    merged.append(pieces[place])
                    place += 1
            pieces = merged
        return pieces

    def _known(self, piece: str, *, is_last: bool) -> Iterator[str]:
        """Yields the piece if the vocabulary has it, else its parts; a character has none."""
        parts = self._parts.get(piece)
        if parts is None or _as_text(piece, is_last) in self.vocabulary:
            yield piece
            return
        yield from self._known(parts[0], is_last=False)
        yield from self._known(parts[1], is_last=is_last)


def _as_text(piece: str, is_last: bool) -> str:
    return piece.removesuffix(END_OF_WORD) if is_last else piece + CONTINUED


def _columns(path: str | os.PathLike[str], names: str) -> Iterator[list[str]]:
    for number, line in read_lines(path):
        columns = line.split(" ")
        if len(columns) != len(names.split()) or not all(columns) or not columns[-1].isdecimal():
            raise InputError(
                f"the line is not '{names}', as fastBPE writes it",
                path=path,
                line=number,
                remedy="name the files that belong to the encoder, such as 93langs.fcodes",
            )
        yield columns
