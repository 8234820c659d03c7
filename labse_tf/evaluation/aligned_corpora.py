"""Aligned corpora in a folder: Moses pairs `NAME.<a>-<b>.<a>` and `.<b>`, or `NAME.tsv`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from labse_tf.errors import InputError
from labse_tf.evaluation.texts import check_text
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.textio import read_lines, split_pair, with_columns

_MOSES = re.compile(r"(.+\.)?([A-Za-z_]+)-([A-Za-z_]+)\.([A-Za-z_]+)")


class AlignedFiles(NamedTuple):
    """The two paths of an aligned corpus; for a TSV file, both are the same."""

    source_path: str
    target_path: str

    @property
    def paths(self) -> set[str]:
        return set(self)

    def texts(self, side: int) -> Iterator[str]:
        """Yields the sources (side 0) or targets (side 1).

        Raises:
          InputError: as `read_lines`, or if a text is empty or contains a NUL byte.
        """
        path, first, lines = self[side], 0, read_lines(self[side])
        is_table = self.source_path == self.target_path
        if is_table:
            first, lines = with_columns(lines, path)
        for number, line in lines:
            if is_table:
                line = split_pair(line, path, number, first=first)[side]
            yield check_text(line, path, number)


def find_corpora(data: str | os.PathLike[str]) -> dict[str, AlignedFiles]:
    """Returns the aligned corpora by name; names of Moses pairs end in `<a>-<b>`.

    Raises:
      InputError: if there is none, or a Moses pair lacks a side.
    """
    folder = Path(data)
    paths = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    found, names = {}, {split_compression(path.name)[0]: str(path) for path in paths}
    for name, path in names.items():
        if name.endswith(".tsv"):
            found[name.removesuffix(".tsv")] = AlignedFiles(path, path)
        elif (match := _MOSES.fullmatch(name)) and match[4] in match.groups()[1:3]:
            stem = name.removesuffix(f".{match[4]}")
            sides = [f"{stem}.{match[place]}" for place in (2, 3)]
            for side in sides:
                if side not in names:
                    raise InputError(f"holds no {side}", path=data, remedy=f"put it beside {name}")
            found[stem] = AlignedFiles(*(names[side] for side in sides))
    if not found:
        raise InputError(
            "holds no aligned corpus",
            path=data,
            remedy="expected NAME.<a>-<b>.<a> and NAME.<a>-<b>.<b>, or NAME.tsv",
        )
    return found
