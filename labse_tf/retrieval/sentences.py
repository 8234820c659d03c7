"""One side of a search for translations: its distinct sentences, and the lines they come from."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable

import numpy as np

from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines

NOWHERE = -1


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Distinct sentences in the order of their first lines.

    Attributes:
      path: of the file, or what stands for it in messages.
      texts: without surrounding white space.
      lines: int64 `[texts]`, the line of each, counted from 0.
      places: int64 `[lines of the file]`, which of the texts each line has; NOWHERE if empty.
    """

    path: str
    texts: list[str]
    lines: np.ndarray
    places: np.ndarray

    def facts(self) -> dict[str, int]:
        """Returns how many lines there are, and how many were left out for which reason."""
        empty = int((self.places == NOWHERE).sum())
        return {
            "lines": len(self.places),
            "empty": empty,
            "duplicates": len(self.places) - empty - len(self.texts),
            "sentences": len(self.texts),
        }


def read_sentences(path: str | os.PathLike[str]) -> Sentences:
    """Reads a file of a sentence a line.

    Sentences are the same if they are without surrounding white space; the first stays. Empty lines
    are no sentences. Neither changes how lines are counted.

    Raises:
      InputError: as `textio.read_lines`, or a line has a NUL byte, or all lines are empty.
    """
    return distinct((line for _, line in read_lines(path)), os.fspath(path))


def distinct(lines: Iterable[str], path: str) -> Sentences:
    """Returns the sentences of lines, as `read_sentences`; `path` is named in errors."""
    first: dict[str, int] = {}
    starts: list[int] = []
    places: list[int] = []
    for number, line in enumerate(lines):
        text = line.strip()
        check_text(text, path, number + 1)
        if not text:
            places.append(NOWHERE)
            continue
        place = first.setdefault(text, len(first))
        if place == len(starts):
            starts.append(number)
        places.append(place)
    if not first:
        raise InputError("has no line with text", path=path, remedy="name a file with sentences")
    return Sentences(path, list(first), np.array(starts, np.int64), np.array(places, np.int64))


def check_text(text: str, path: str, line: int) -> None:
    """Raises InputError if a text has a NUL byte: it is no text, or in another encoding."""
    if "\0" in text:
        raise InputError(
            "the line has a NUL byte",
            path=path,
            line=line,
            remedy="remove it, or convert the file to UTF-8 if it is UTF-16",
        )
