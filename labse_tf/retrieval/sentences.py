"""One side of a search for translations: its distinct sentences and their lines."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable

import numpy as np

from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines, strip

NOWHERE = -1


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Distinct sentences in the order of their first lines.

    Attributes:
      path: path of the file, or a name for messages.
      texts: the sentences, without surrounding white space.
      lines: int64 `[texts]`, the first line of each, counted from 0.
      places: int64 `[lines of the file]`, the index of each line's text; NOWHERE if empty.
    """

    path: str
    texts: list[str]
    lines: np.ndarray
    places: np.ndarray

    def facts(self) -> dict[str, int]:
        """Returns the number of lines, and how many were left out for each reason."""
        empty = int((self.places == NOWHERE).sum())
        return {
            "lines": len(self.places),
            "empty": empty,
            "duplicates": len(self.places) - empty - len(self.texts),
            "sentences": len(self.texts),
        }


def read_sentences(path: str | os.PathLike[str]) -> Sentences:
    """Reads a file with one sentence per line.

    Sentences are compared without surrounding white space; of equal ones the first is kept. Empty
    lines are skipped. Neither affects line numbers.

    Raises:
      InputError: as `textio.read_lines`, or if a line has a NUL byte, or all lines are empty.
    """
    return distinct((line for _, line in read_lines(path)), os.fspath(path))


def distinct(lines: Iterable[str], path: str) -> Sentences:
    """Returns the distinct sentences of lines, as `read_sentences`; `path` is for errors."""
    first: dict[str, int] = {}
    starts: list[int] = []
    places: list[int] = []
    for number, line in enumerate(lines):
        text = strip(line)
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
    """Raises InputError if there is a NUL byte: the file is not text, or in another encoding."""
    if "\0" in text:
        raise InputError(
            "the line has a NUL byte",
            path=path,
            line=line,
            remedy="remove it, or convert the file to UTF-8 if it is UTF-16",
        )
