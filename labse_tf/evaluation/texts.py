"""Test sets are read whole and strictly: a line that cannot be scored ends the evaluation."""

from __future__ import annotations

import os

from labse_tf.errors import InputError
from labse_tf.files.textio import ends_early, read_lines


def read_texts(path: str | os.PathLike[str]) -> list[str]:
    """Returns the lines of a file, without white space around them.

    Raises:
      InputError: as `read_lines`, or a line is empty or holds a NUL byte.
    """
    return [check_text(line, path, number) for number, line in read_lines(path)]


def read_aligned(
    source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]
) -> tuple[list[str], list[str]]:
    """Returns the lines of two files of as many lines; line i of one translates that of the other.

    Raises:
      InputError: as `read_texts`, or one file has fewer lines.
    """
    sources, targets = read_texts(source_path), read_texts(target_path)
    if len(sources) < len(targets):
        raise ends_early(source_path, target_path, len(sources))
    if len(targets) < len(sources):
        raise ends_early(target_path, source_path, len(targets))
    return sources, targets


def check_text(text: str, path: str | os.PathLike[str], line: int) -> str:
    """Returns the text without white space around it.

    Raises:
      InputError: if nothing is left, or it holds a NUL byte.
    """
    if "\0" in text:
        raise InputError(
            "the line holds a NUL byte", path=path, line=line, remedy="fetch the file again"
        )
    text = text.strip()
    if not text:
        raise InputError(
            "the text is empty",
            path=path,
            line=line,
            remedy="fetch the file again: an empty text has no translation to find",
        )
    return text
