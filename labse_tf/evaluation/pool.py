"""A pool of the same sentences in several languages: files `<code>.txt`, equally many lines.

FLORES' names are read too: `<code>.dev` and `<code>.devtest`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from labse_tf.errors import InputError
from labse_tf.evaluation.texts import read_texts, second_file
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.textio import ends_early

_EXTENSIONS = (".txt", ".dev", ".devtest")


def find_files(
    data: str | os.PathLike[str], languages: Iterable[str] | None = None
) -> dict[str, str]:
    """Returns the path of each language's file, by code.

    Raises:
      InputError: if there are fewer than two files, a language has two, or one of `languages` has
        none.
    """
    folder = Path(data)
    found: dict[str, str] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        code, extension = os.path.splitext(split_compression(path.name)[0])
        if extension not in _EXTENSIONS:
            continue
        if code in found:
            raise second_file(path, found[code], f"file of '{code}'")
        found[code] = str(path)
    for code in languages or ():
        if code not in found:
            few = ", ".join(list(found)[:5])
            raise InputError(
                f"holds no file of '{code}' ({few}, ... are there)"
                if few
                else f"holds no file of '{code}'",
                path=data,
                remedy="add it",
            )
    chosen = {code: found[code] for code in (languages or found)}
    if len(chosen) < 2:
        raise InputError(
            "holds fewer than two languages",
            path=data,
            remedy="expected <code>.txt (or .dev, .devtest), the same sentences in each",
        )
    return chosen


def read_pool(files: Mapping[str, str], sentences: int | None = None) -> dict[str, list[str]]:
    """Returns the first `sentences` sentences of each language, by default all.

    Raises:
      InputError: if `sentences` is less than 2, the files differ in their number of lines, or have
        only one.
    """
    if sentences is not None and sentences < 2:
        raise InputError(f"--sentences is {sentences}", remedy="give 2 or more")
    texts = {code: read_texts(path) for code, path in files.items()}
    longest = max(texts, key=lambda code: len(texts[code]))
    for code, lines in texts.items():
        if len(lines) < len(texts[longest]):
            raise ends_early(files[code], files[longest], len(lines))
    if len(texts[longest]) < 2:
        raise InputError(
            "has only one sentence", path=files[longest], remedy="there must be 2 or more"
        )
    return {code: lines[:sentences] for code, lines in texts.items()}
