"""Reads test sets strictly: a line that cannot be scored ends the evaluation."""

from __future__ import annotations

import os
from collections.abc import Sequence

from labse_tf.errors import InputError
from labse_tf.files.textio import ends_early, read_lines, strip


def read_texts(path: str | os.PathLike[str]) -> list[str]:
    """Returns the lines of a file, without surrounding white space.

    Raises:
      InputError: as `read_lines`, or if a line is empty or contains a NUL byte.
    """
    return [check_text(line, path, number) for number, line in read_lines(path)]


def read_aligned(
    source_path: str | os.PathLike[str], target_path: str | os.PathLike[str]
) -> tuple[list[str], list[str]]:
    """Returns the lines of two files of the same length, in which lines i are translations.

    Raises:
      InputError: as `read_texts`, or if one file has fewer lines.
    """
    sources, targets = read_texts(source_path), read_texts(target_path)
    if len(sources) < len(targets):
        raise ends_early(source_path, target_path, len(sources))
    if len(targets) < len(sources):
        raise ends_early(target_path, source_path, len(targets))
    return sources, targets


def check_text(text: str, path: str | os.PathLike[str], line: int) -> str:
    """Returns the text without surrounding white space.

    Raises:
      InputError: if nothing is left, or it contains a NUL byte.
    """
    if "\0" in text:
        raise InputError(
            "the line holds a NUL byte", path=path, line=line, remedy="fetch the file again"
        )
    text = strip(text)
    if not text:
        raise InputError(
            "the text is empty",
            path=path,
            line=line,
            remedy="fetch the file again: an empty text has no translation to find",
        )
    return text


def read_columns(path: str | os.PathLike[str], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the first columns of a TSV file, one for each name; further ones are ignored.

    Raises:
      InputError: as `read_texts`, or if a line has fewer columns.
    """
    rows = []
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) < len(names):
            raise InputError(
                f"{len(columns)} columns where {', '.join(names)} are expected",
                path=path,
                line=number,
                remedy="separate them by tabs",
            )
        rows.append(tuple(check_text(column, path, number) for column in columns[: len(names)]))
    return rows


def second_file(
    path: str | os.PathLike[str], first: str | os.PathLike[str], what: str
) -> InputError:
    """Returns the error of a file where only one of its kind may be; `first` is the other one."""
    return InputError(
        f"is a second {what}, beside {os.path.basename(first)}",
        path=path,
        remedy="leave one of them",
    )
