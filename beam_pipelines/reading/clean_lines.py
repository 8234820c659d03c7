"""Lines of corpus text, where a NUL byte is a fault: it tells of damage or of another encoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from labse_tf.errors import InputError
from labse_tf.files import textio


def clean_lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, str | InputError]]:
    """As `textio.lines_and_errors`, with an error in the place of a line with a NUL byte, too."""
    for number, line in textio.lines_and_errors(stream, name):
        if not isinstance(line, InputError) and "\0" in line:
            line = nul_byte(name, "the line", number)
        yield number, line


def nul_byte(path: str, place: str, line: int | None = None) -> InputError:
    """Returns the error; `place` says what holds the byte."""
    return InputError(
        f"{place} holds a NUL byte",
        path=path,
        line=line,
        remedy="remove it or fetch the file again",
    )
