"""Reads test sets strictly: a line that cannot be scored ends the evaluation."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from labse_tf.errors import InputError
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.textio import ends_early, read_lines, split_pair, strip, with_columns


def find_files(
    data: str | os.PathLike[str],
    pattern: re.Pattern[str],
    expected: str,
    *,
    key: Callable[[re.Match[str]], Any] = re.Match.groups,
) -> dict[Any, str]:
    """Returns the paths of the files in a folder whose names match, by their key.

    Args:
      data: the folder.
      pattern: of the whole name, without an extension of compression; if the pattern has a "/", of
        the path below `data`.
      expected: the files that the error names if there are none.
      key: of a match; by default its groups.

    Raises:
      InputError: if there are none, or two files have the same key.
    """
    root, found = Path(data), {}
    paths = root.rglob("*") if "/" in pattern.pattern else root.iterdir()
    for path in sorted(paths) if root.is_dir() else ():
        match = pattern.fullmatch(split_compression(path.relative_to(root).as_posix())[0])
        if match and path.is_file():
            first = found.setdefault(key(match), str(path))
            if first != str(path):
                raise InputError(
                    f"is a second file of '{_spoken(key(match))}', beside {Path(first).name}",
                    path=path,
                    remedy="leave one of them",
                )
    if not found:
        raise InputError(f"holds no files {expected}", path=data, remedy="see `labse eval --help`")
    return found


def _spoken(key: Any) -> str:
    return key if isinstance(key, str) else ".".join(filter(None, key))


def check_text(text: str, path: str | os.PathLike[str], line: int) -> str:
    """Returns the text without surrounding white space.

    Raises:
      InputError: if nothing is left, or it contains a NUL byte.
    """
    problem = "the line holds a NUL byte" if "\0" in text else None
    text = strip(text)
    if problem or not text:
        remedy = "fetch the file again: a text without letters cannot be scored"
        raise InputError(problem or "the text is empty", path=path, line=line, remedy=remedy)
    return text


def read_texts(path: str | os.PathLike[str]) -> list[str]:
    """Returns the lines of a file, without surrounding white space.

    Raises:
      InputError: as `read_lines`, or if a line is empty or contains a NUL byte.
    """
    return [check_text(line, path, number) for number, line in read_lines(path)]


def read_aligned(paths: Mapping[Any, str]) -> dict[Any, list[str]]:
    """Returns the lines of files with the same number of lines, by their keys.

    Raises:
      InputError: as `read_texts`, or if one file has fewer lines.
    """
    texts = {key: read_texts(path) for key, path in paths.items()}
    longest = max(texts, key=lambda key: len(texts[key]))
    for key, lines in texts.items():
        if len(lines) < len(texts[longest]):
            raise ends_early(paths[key], paths[longest], len(lines))
    return texts


def read_columns(
    path: str | os.PathLike[str], names: Sequence[str], *, only: bool = False
) -> list[tuple[str, ...]]:
    """Returns the first columns of each line of a TSV file, one for each name.

    Args:
      path: the file.
      names: of the columns, for errors.
      only: whether further columns are an error, not ignored.

    Raises:
      InputError: as `read_texts`, or if a line has too few columns.
    """
    rows = []
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) < len(names) or (only and len(columns) > len(names)):
            raise InputError(
                f"{len(columns)} columns where {', '.join(names)} are expected",
                path=path,
                line=number,
                remedy="separate them by tabs",
            )
        rows.append(tuple(check_text(column, path, number) for column in columns[: len(names)]))
    return rows


_POOL = re.compile(r"(.+)\.(?:txt|dev|devtest)")


def find_pool(
    data: str | os.PathLike[str], languages: Iterable[str] | None = None
) -> dict[str, str]:
    """Returns the paths of the same sentences in several languages, by code.

    The files are `<code>.txt`, or FLORES' `<code>.dev` and `<code>.devtest`.

    Raises:
      InputError: if there are fewer than two, a language has two, or one of `languages` has none.
    """
    expected = "<code>.txt (or .dev, .devtest), the same sentences in each"
    found = find_files(data, _POOL, expected, key=lambda match: match[1])
    for code in languages or ():
        if code not in found:
            there = ", ".join(list(found)[:5])
            raise InputError(
                f"holds no file of '{code}' ({there}, ... are there)", path=data, remedy="add it"
            )
    chosen = {code: found[code] for code in (languages or found)}
    if len(chosen) < 2:
        raise InputError("holds fewer than two languages", path=data, remedy=f"expected {expected}")
    return chosen


def read_pool(files: Mapping[str, str], sentences: int | None = None) -> dict[str, list[str]]:
    """Returns the first `sentences` sentences of each language, by default all.

    Raises:
      InputError: as `read_aligned`, or if there is only one sentence.
    """
    texts = read_aligned(files)
    code, lines = next(iter(texts.items()))
    if len(lines) < 2:
        raise InputError(
            "has only one sentence", path=files[code], remedy="there must be 2 or more"
        )
    return {code: lines[:sentences] for code, lines in texts.items()}


_ALIGNED = re.compile(r"(.+)\.tsv|((?:.+\.)?([A-Za-z_]+)-([A-Za-z_]+))\.(?:\3|\4)")


class AlignedFiles(NamedTuple):
    """The two paths of an aligned corpus; for a TSV file, both are the same."""

    source_path: str
    target_path: str

    @property
    def is_table(self) -> bool:
        return self.source_path == self.target_path

    def texts(self, side: int) -> Iterator[str]:
        """Yields the sources (side 0) or targets (side 1).

        Raises:
          InputError: as `read_lines`, or if a text is empty or contains a NUL byte.
        """
        path, first, lines = self[side], 0, read_lines(self[side])
        if self.is_table:
            first, lines = with_columns(lines, path)
        for number, line in lines:
            if self.is_table:
                line = split_pair(line, path, number, first=first)[side]
            yield check_text(line, path, number)


def find_corpora(data: str | os.PathLike[str]) -> dict[str, AlignedFiles]:
    """Returns the aligned corpora by name, Moses pairs or `NAME.tsv`.

    The name of a Moses pair `NAME.<a>-<b>.<a>` and `NAME.<a>-<b>.<b>` ends in `<a>-<b>`.

    Raises:
      InputError: if there is none, or a Moses pair lacks a side.
    """
    expected = "NAME.<a>-<b>.<a> and NAME.<a>-<b>.<b>, or NAME.tsv: no aligned corpus"
    names = find_files(data, _ALIGNED, expected, key=lambda match: match[0])
    found = {}
    for name, path in names.items():
        table, pair, *languages = _ALIGNED.fullmatch(name).groups()
        sides = [side_of(names, f"{pair}.{one}", data, name) for one in languages if one]
        found[table or pair] = AlignedFiles(*(sides or [path, path]))
    return found


def side_of(names: Mapping[str, str], wanted: str, data: str | os.PathLike[str], other: str) -> str:
    """Returns the path of the file `wanted`; raises InputError if it is not beside `other`."""
    if wanted not in names:
        raise InputError(f"holds no {wanted}", path=data, remedy=f"put it beside {other}")
    return names[wanted]
