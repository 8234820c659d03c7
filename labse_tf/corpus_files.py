"""Finds the corpus files behind the paths that a user names, and what each of them holds."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from labse_tf.errors import InputError
from labse_tf.languages import require_code
from labse_tf.textio import COMPRESSIONS

MONOLINGUAL = "monolingual"
BITEXT = "bitext"


class CorpusFile(NamedTuple):
    """A file of text in one language, or of pairs of English and that language.

    Attributes:
      path: where it lies.
      language: the paper's code; of a bitext file, the side that is not English.
      kind: MONOLINGUAL or BITEXT.
      format: "text", "tsv" or "tfrecord".
    """

    path: str
    language: str
    kind: str
    format: str


def find_corpus_files(inputs: Iterable[str], *, kind: str | None = None) -> list[CorpusFile]:
    """Returns the corpus files in `inputs` (files, folders, globs), sorted by path.

    `<lang>.txt` is monolingual, `<lang>.tsv` is bitext (both .gz, .xz, .bz2, .zst or plain), and
    clean shards are `{monolingual,bitext}/<lang>/*.tfrecord.gz`. In a folder other files are passed
    over; a file that is named itself must be one of these.

    Args:
      inputs: what the user named.
      kind: keep only MONOLINGUAL or BITEXT files; None keeps both.

    Raises:
      InputError: if a path does not exist, holds no corpus file, or names no known language.
    """
    found: dict[str, CorpusFile] = {}
    for name in inputs:
        files = [file for file in _describe_all(name) if kind in (None, file.kind)]
        if not files:
            raise InputError(
                f"holds no {kind or 'corpus'} files",
                path=name,
                remedy=f"expected {_expected(kind)}",
            )
        found.update((file.path, file) for file in files)
    return [found[path] for path in sorted(found)]


def _expected(kind: str | None) -> str:
    text, tsv, shards = "<lang>.txt[.gz]", "<lang>.tsv[.gz]", "<lang>/*.tfrecord.gz"
    if kind == MONOLINGUAL:
        return f"{text} or monolingual/{shards}"
    if kind == BITEXT:
        return f"{tsv} or bitext/{shards}"
    return f"{text}, {tsv} or {{monolingual,bitext}}/{shards}"


def _describe_all(name: str) -> list[CorpusFile]:
    if os.path.isdir(name):
        paths = sorted(str(path) for path in Path(name).rglob("*") if path.is_file())
        return [file for path in paths if (file := describe(path)) is not None]
    paths = sorted(glob.glob(name)) if glob.has_magic(name) else [name]
    files = []
    for path in paths:
        if not os.path.exists(path):
            raise InputError("no such file or folder", path=path, remedy="check the path")
        file = describe(path)
        if file is None:
            raise InputError(
                "unknown kind of file", path=path, remedy=f"expected {_expected(None)}"
            )
        files.append(file)
    return files


def describe(path: str) -> CorpusFile | None:
    """Returns what `path` holds, told by its name alone; None for no corpus file.

    Raises:
      InputError: if the name has the form of a corpus file but no known language code.
    """
    base = os.path.basename(path)
    for compression in COMPRESSIONS:
        base = base.removesuffix(compression)
    stem, extension = os.path.splitext(base)
    if extension == ".txt":
        return CorpusFile(path, require_code(stem, path=path), MONOLINGUAL, "text")
    if extension == ".tsv":
        return CorpusFile(path, require_code(stem, path=path), BITEXT, "tsv")
    folders = Path(path).parts[:-1]
    if extension == ".tfrecord" and len(folders) >= 2 and folders[-2] in (MONOLINGUAL, BITEXT):
        return CorpusFile(path, require_code(folders[-1], path=path), folders[-2], "tfrecord")
    return None
