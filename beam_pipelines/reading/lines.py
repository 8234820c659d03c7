"""Lines of corpus text, and Moses pairs: two files whose lines translate one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from beam_pipelines.records.records import Pair
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.files.textio import strip


def clean_lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, str | InputError]]:
    """Like `textio.lines_and_errors`, but a line with a NUL byte is also replaced by an error."""
    for number, line in textio.lines_and_errors(stream, name):
        if not isinstance(line, InputError) and "\0" in line:
            line = nul_byte(name, "the line", number)
        yield number, line


def nul_byte(path: str, place: str, line: int | None = None) -> InputError:
    """Returns the error; `place` says what contains the byte."""
    return InputError(
        f"{place} holds a NUL byte",
        path=path,
        line=line,
        remedy="remove it or fetch the file again",
    )


def read_moses(
    foreign: BinaryIO, english: BinaryIO, file: CorpusFile
) -> Iterator[Pair | InputError]:
    """Yields the pairs of two open streams of raw bytes, or what is wrong with a line.

    A side may be empty, as is common in automatically aligned text: the filters count and drop such
    pairs.

    Raises:
      InputError: if a side is damaged or empty, or ends before the other.
    """
    sides = (file.path, file.english_path)
    foreign_lines = clean_lines(foreign, file.path)
    english_lines = clean_lines(english, file.english_path)
    for number, target in foreign_lines:
        source = next(english_lines, None)
        if source is None:
            raise textio.ends_early(*reversed(sides), number - 1)
        fault = next((line for line in (target, source[1]) if isinstance(line, InputError)), None)
        yield fault or Pair(strip(source[1]), strip(target), file.language)
    if next(english_lines, None) is not None:
        raise textio.ends_early(*sides, number)
