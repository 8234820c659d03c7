"""The sides of a search for translations: distinct sentences, their lines, vectors, gold pairs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from labse_tf.embedding.file import embed_lines
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines, split_pair, strip
from labse_tf.retrieval.vectors import (
    ArrayLike,
    Selection,
    Vectors,
    is_binary,
    not_unit,
    open_vectors,
)

SIDES = ("source", "target")
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


def distinct(lines: Iterable[str], path: str | os.PathLike[str]) -> Sentences:
    """Returns the distinct sentences of the lines of the file `path`.

    Sentences are compared without surrounding white space. Empty lines are skipped.

    Raises:
      InputError: if a line has a NUL byte, or all lines are empty.
    """
    path = os.fspath(path)
    first: dict[str, int] = {}
    places: list[int] = []
    for number, line in enumerate(lines, 1):
        text = strip(line)
        check_text(text, path, number)
        places.append(first.setdefault(text, len(first)) if text else NOWHERE)
    if not first:
        raise InputError("has no line with text", path=path, remedy="name a file with sentences")
    found, starts = np.unique(places, return_index=True)
    return Sentences(path, list(first), starts[found != NOWHERE], np.array(places, np.int64))


def check_text(text: str, path: str, line: int) -> None:
    """Raises InputError if there is a NUL byte: the file is not text, or in another encoding."""
    if "\0" in text:
        remedy = "remove it, or convert the file to UTF-8 if it is UTF-16"
        raise InputError("the line has a NUL byte", path=path, line=line, remedy=remedy)


def embed_sides(
    sides: Sequence[Sentences], folder: Path, open_encoder: Callable[[], Encoder]
) -> list[Vectors]:
    """Writes, or finishes writing, `source.npy` and `target.npy` in `folder`, and opens them.

    The encoder is opened only if there is something to embed.

    Raises:
      InputError: if the encoder's vector for a sentence does not have unit length.
    """
    files = [folder / f"{name}.npy" for name in SIDES]
    if not all(file.exists() for file in files):
        encoder = open_encoder()
        for side, file, name in zip(sides, files, SIDES, strict=True):
            checked, total = _UnitEncoder(encoder, side), len(side.texts)
            embed_lines(side.texts, checked, file, total=total, description=f"embed {name}")
    return [open_vectors(file) for file in files]


@dataclasses.dataclass
class _UnitEncoder:
    """An encoder that reports sentences whose vector does not have unit length."""

    encoder: Encoder
    side: Sentences

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self.encoder.encode(texts)
        for bad in not_unit(vectors):
            line = int(self.side.lines[self.side.texts.index(texts[bad])]) + 1
            problem = f"the model's vector for '{texts[bad][:60]}' is not of unit length"
            remedy = "remove the sentence, or use another model"
            raise InputError(problem, path=self.side.path, line=line, remedy=remedy)
        return vectors


def open_sides(
    sides: Sequence[Sentences], paths: Sequence[str], *, dim: int | None = None, binary: bool = True
) -> list[ArrayLike]:
    """Opens the vectors of the lines of two files; returns the vectors of distinct sentences.

    Raises:
      InputError: as `open_vectors`, if the number of rows differs from the number of lines, or if
        there are binary vectors and `binary` is False.
    """
    opened: list[ArrayLike] = []
    for side, path in zip(sides, paths, strict=True):
        vectors = open_vectors(path, dim=opened[0].shape[1] if opened else dim, check=False)
        if is_binary(vectors) and not binary:
            remedy = "rescore by float32, float16 or int8 vectors"
            raise InputError("holds binary vectors, which are not exact", path=path, remedy=remedy)
        if len(vectors) != len(side.places):
            problem = f"has {len(vectors)} rows, but {side.path} has {len(side.places)} lines"
            raise InputError(problem, path=path, remedy="embed that file again with `labse embed`")
        # The vector of an empty line is not used, so it may be anything.
        vectors.check(side.places != NOWHERE)
        whole = len(side.texts) == len(vectors)
        opened.append(vectors if whole else Selection(vectors, side.lines))
    return opened


def read_gold(path: str | os.PathLike[str], sides: Sequence[Sentences]) -> set[tuple[int, int]]:
    """Reads a TSV file of line numbers from 1; returns indices of distinct sources and targets.

    Raises:
      InputError: as `textio.read_lines` and `split_pair`, or if a column is not a number, or the
        line does not exist or is empty.
    """
    pairs = set()
    for number, line in read_lines(path):
        columns, places = split_pair(line, os.fspath(path), number), []
        for column, side, name in zip(columns, sides, SIDES, strict=True):
            if not (column.isascii() and column.isdigit()):
                problem = f"the {name} column is '{column[:40]}', not the number of a line"
            elif not 1 <= int(column) <= len(side.places):
                problem = f"there is no line {int(column)} in {side.path}"
            elif side.places[int(column) - 1] == NOWHERE:
                problem = f"line {int(column)} of {side.path} is empty"
            else:
                places.append(int(side.places[int(column) - 1]))
                continue
            remedy = "give the lines of source and target, counted from 1, with a tab between"
            raise InputError(problem, path=path, line=number, remedy=remedy)
        pairs.add((places[0], places[1]))
    return pairs
