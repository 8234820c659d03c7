"""Pairs for natural language inference: the same ones in several languages."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from labse_tf.errors import InputError
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.staging import input_path
from labse_tf.files.textio import ends_early, read_lines, strip
from labse_tf.languages import require_code

NO_LABEL = "-"
_LABEL = "gold_label"


class InferencePairs(NamedTuple):
    """The same `n` pairs in each of some languages.

    Attributes:
      texts: language -> `n` tuples of premise and hypothesis.
      labels: `n` labels.
    """

    texts: dict[str, list[tuple[str, str]]]
    labels: list[str]


def read_inference_pairs(entry: str) -> InferencePairs:
    """Reads aligned files `[NAME.]<lang>.tsv`, or one of XNLI's or MultiNLI's; also compressed.

    Args:
      entry: a folder of files of premise, hypothesis and label, a file, or a glob. A file whose
        first line names the columns `gold_label`, `sentence1` and `sentence2` is read by these. It
        is in English, or has the columns `language`, and `pairID` for what is the same.

    Raises:
      InputError: if there are none, two have the same language, a line lacks a column, or one file
        has fewer lines.
    """
    paths = find_inference_files(entry)
    rows: dict[str, list[list[str]]] = {}
    origins = []
    for path in paths:
        lines = list(read_lines(path))
        header = lines[0][1].split("\t")
        if _LABEL in header:
            found = _by_header(header, lines[1:], path)
        else:
            language = require_code(_stem(path).rpartition(".")[2], path=path)
            found = {language: [_split(line, path, number) for number, line in lines]}
        if both := sorted(found.keys() & rows.keys()):
            raise InputError(
                f"is a second file in '{both[0]}'",
                path=path,
                remedy="name the files of one set, such as 'xnli/dev.*'",
            )
        rows |= found
        origins += [path] * len(found)
    longest = max(map(len, rows.values()))
    for path, found in zip(origins, rows.values(), strict=True):
        if len(found) < longest:
            other = origins[[len(one) for one in rows.values()].index(longest)]
            raise ends_early(path, other, len(found))
    labels = [[row[2] for row in same] for same in zip(*rows.values(), strict=True)]
    kept = [place for place, same in enumerate(labels) if NO_LABEL not in same]
    if not kept:
        raise InputError("has no pair with a label", path=paths[0], remedy="add pairs")
    return InferencePairs(
        {
            language: [(found[place][0], found[place][1]) for place in kept]
            for language, found in rows.items()
        },
        [labels[place][0] for place in kept],
    )


def find_inference_files(entry: str) -> list[str]:
    """Returns the paths that `read_inference_pairs` reads.

    Raises:
      InputError: if there is none.
    """
    entry = input_path(entry)
    if os.path.isdir(entry):
        found = [str(path) for path in sorted(Path(entry).iterdir()) if path.is_file()]
        found = [path for path in found if _stem(path) != os.path.basename(path)]
    else:
        found = [entry] if os.path.exists(entry) else sorted(glob.glob(entry))
    if not found or not all(os.path.isfile(path) for path in found):
        raise InputError(
            "no files <lang>.tsv of premise, hypothesis and label",
            path=entry,
            remedy="check the path",
        )
    return found


def _stem(path: str) -> str:
    """Returns the name without `.tsv` and compression; the whole name of another file."""
    name = os.path.basename(path)
    base, _ = split_compression(name)
    return base.removesuffix(".tsv") if base.endswith(".tsv") else name


def _split(line: str, path: str, number: int) -> list[str]:
    columns = [strip(column) for column in line.split("\t")[:3]]
    if len(columns) < 3 or not all(columns):
        raise InputError(
            "the line has no premise, hypothesis and label",
            path=path,
            line=number,
            remedy="separate them by tabs",
        )
    return columns


def _by_header(
    header: Sequence[str], lines: Sequence[tuple[int, str]], path: str
) -> dict[str, list[list[str]]]:
    """Returns the rows of a file of XNLI or MultiNLI by language, in the order of their pairID."""
    missing = [name for name in ("sentence1", "sentence2") if name not in header]
    if missing:
        raise InputError(
            f"has a column '{_LABEL}', but no '{missing[0]}'",
            path=path,
            remedy="fetch the file again, or leave its first line out",
        )
    if not lines:
        raise InputError("has only a header", path=path, remedy="fetch the file again")
    found: dict[str, dict[str, list[str]]] = {}
    for number, line in lines:
        row = dict(zip(header, line.split("\t"), strict=False))
        columns = "\t".join(row.get(name, "") for name in ("sentence1", "sentence2", _LABEL))
        language = require_code(row.get("language", "en"), path=path, line=number)
        same = row["pairID"] if "language" in header and "pairID" in row else f"{number:09}"
        if same in found.setdefault(language, {}):
            raise InputError(
                f"is a second pair {same} in '{language}'",
                path=path,
                line=number,
                remedy="fetch the file again",
            )
        found[language][same] = _split(columns, path, number)
    everything = set().union(*found.values())
    for language, rows in found.items():
        if lost := sorted(everything - rows.keys()):
            raise InputError(
                f"has the pair {lost[0]} in some languages, but not in '{language}'",
                path=path,
                remedy="fetch the file again",
            )
    return {language: [rows[same] for same in sorted(rows)] for language, rows in found.items()}


def labels_of(sets: Sequence[InferencePairs]) -> list[str]:
    """Returns the distinct labels, sorted: their places are the classifier's outputs."""
    return sorted({label for pairs in sets for label in pairs.labels})
