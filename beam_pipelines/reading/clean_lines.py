"""Lines of corpus text. A NUL byte is an error: it indicates damage or another encoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from labse_tf.errors import InputError
from labse_tf.files import textio


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
