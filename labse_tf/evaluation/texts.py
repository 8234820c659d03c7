"""Reads test sets strictly: a line that cannot be scored ends the evaluation."""

from __future__ import annotations

import contextlib
import glob
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labse_tf.embedding.protocol import TextVectors
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.staging import input_path
from labse_tf.files.textio import ends_early, read_lines, read_pairs, strip
from labse_tf.languages import require_code

AGAIN = "fetch the file again"


def find_files(
    data: str | os.PathLike[str],
    pattern: re.Pattern[str],
    expected: str,
    *,
    key: Callable[[re.Match[str]], Any] = re.Match.groups,
) -> dict[Any, str]:
    """Returns the paths of the files in the folder `data` whose names match, by their key.

    The pattern is of the name without compression, or if it has a "/", of the path below `data`.

    Raises:
      InputError: if there are none such as `expected`, or two files have the same key.
    """
    root, found = Path(data), {}
    paths = root.rglob("*") if "/" in pattern.pattern else root.glob("*")
    for path in map(str, sorted(paths)):
        match = pattern.fullmatch(split_compression(os.path.relpath(path, root))[0])
        if match and os.path.isfile(path):
            first = found.setdefault(key(match), path)
            if first != path:
                problem = f"is a second file beside {os.path.basename(first)}"
                raise InputError(problem, path=path, remedy="leave one of them")
    if not found:
        raise InputError(f"holds no files {expected}", path=data, remedy="see `labse eval --help`")
    return found


def side_of(names: Mapping[str, str], wanted: str, data: str | os.PathLike[str], other: str) -> str:
    """Returns the path of the file `wanted`; raises InputError if it is not beside `other`."""
    if wanted not in names:
        raise InputError(f"holds no {wanted}", path=data, remedy=f"put it beside {other}")
    return names[wanted]


def check_text(text: str, path: str | os.PathLike[str], line: int) -> str:
    """Returns the text stripped; raises InputError if nothing is left, or there is a NUL byte."""
    text = strip(text)
    if not text or "\0" in text:
        problem = "the line holds a NUL byte" if text else "the text is empty"
        raise InputError(problem, path=path, line=line, remedy=AGAIN)
    return text


def check_lengths(paths: Sequence[str], sides: Sequence[Sized]) -> None:
    """Raises InputError if a side, read from the path in its place, is shorter than another."""
    lengths = list(map(len, sides))
    for path, length in zip(paths, lengths, strict=True):
        if length < max(lengths):
            raise ends_early(path, paths[lengths.index(max(lengths))], length)


def read_texts(path: str | os.PathLike[str]) -> list[str]:
    """Returns the lines of a file; errors are as of `read_lines` and `check_text`."""
    return [check_text(line, path, number) for number, line in read_lines(path)]


def read_aligned(paths: Mapping[Any, str]) -> dict[Any, list[str]]:
    """Returns the lines of files by their keys; an InputError if one has fewer lines."""
    texts = {key: read_texts(path) for key, path in paths.items()}
    check_lengths(list(paths.values()), list(texts.values()))
    return texts


def read_columns(
    path: str | os.PathLike[str], names: Sequence[str], *, only: bool = False
) -> list[tuple[str, ...]]:
    """Returns the first columns of each line of a TSV file, one for each name.

    Raises:
      InputError: as `read_texts`, or if a line has too few columns, or more if these are the `only`
        ones.
    """
    rows = []
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) < len(names) or (only and len(columns) > len(names)):
            problem = f"{len(columns)} columns where {', '.join(names)} are expected"
            raise InputError(problem, path=path, line=number, remedy="separate them by tabs")
        rows.append(tuple(check_text(column, path, number) for column in columns[: len(names)]))
    return rows


def read_scores(
    texts: Sequence[str], path: str, least: float = -math.inf, most: float = math.inf
) -> np.ndarray:
    """Returns the numbers in a column of a file, `[n]`; an InputError if one is not in range."""
    scores = np.full(len(texts), np.nan)
    for place, text in enumerate(texts):
        with contextlib.suppress(ValueError):
            scores[place] = float(text)
        if not (math.isfinite(scores[place]) and least <= scores[place] <= most):
            limits = "" if most == math.inf else f" from {least} to {most}"
            problem = f"the score '{text[:40]}' is not a number{limits}"
            raise InputError(problem, path=path, line=place + 1, remedy="give the score as 3.5")
    return scores


class ScoredPairs(NamedTuple):
    """Pairs of sentences, and `[n]` scores or labels."""

    scores: np.ndarray
    first: list[str]
    second: list[str]

    def cosines(self, vectors: TextVectors) -> np.ndarray:
        """Returns the cosine of each pair: float32 `[n]`."""
        return np.einsum("nd,nd->n", vectors[self.first], vectors[self.second])


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
    wanted = list(languages or found)
    if missing := [code for code in wanted if code not in found]:
        raise InputError(f"holds no file of '{missing[0]}'", path=data, remedy="add it")
    if len(wanted) < 2:
        raise InputError("holds fewer than two languages", path=data, remedy=f"expected {expected}")
    return {code: found[code] for code in wanted}


def read_pool(files: Mapping[str, str], sentences: int | None = None) -> dict[str, list[str]]:
    """Returns the first sentences of each language, or all; an InputError if there is only one."""
    texts = read_aligned(files)
    if len(next(iter(texts.values()))) < 2:
        path = next(iter(files.values()))
        raise InputError("has only one sentence", path=path, remedy="add others")
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
        """Yields the sources (side 0) or targets (side 1); errors are as of `read_texts`."""
        path, lines = self[side], read_lines(self[side])
        if self.is_table:
            lines = ((number, pair[side]) for number, *pair in read_pairs(path))
        for number, text in lines:
            yield check_text(text, path, number)


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


NO_LABEL = "-"
_COLUMNS = ("sentence1", "sentence2", "gold_label")


class InferencePairs(NamedTuple):
    """`n` labels, and by language the same `n` pairs of premise and hypothesis."""

    texts: dict[str, list[tuple[str, str]]]
    labels: list[str]


def read_inference_pairs(entry: str) -> InferencePairs:
    """Reads aligned files `[NAME.]<lang>.tsv`, or one of XNLI's or MultiNLI's; also compressed.

    The entry is a folder of files of premise, hypothesis and label, a file, or a glob. A file whose
    first line names the columns `gold_label`, `sentence1` and `sentence2` is read by these. It is
    in English, or has the columns `language` and `pairID`, the same in all languages.

    Raises:
      InputError: if there are none, two have the same language, a line lacks a column, or one file
        has fewer lines.
    """
    paths = find_inference_files(entry)
    rows: dict[str, list[list[str]]] = {}
    origins = []
    for path in paths:
        found = _read_inference_file(path)
        if both := sorted(found.keys() & rows.keys()):
            remedy = "name the files of one set, such as 'xnli/dev.*'"
            raise InputError(f"is a second file in '{both[0]}'", path=path, remedy=remedy)
        rows |= found
        origins += [path] * len(found)
    check_lengths(origins, list(rows.values()))
    labels = [[row[2] for row in same] for same in zip(*rows.values(), strict=True)]
    kept = [place for place, same in enumerate(labels) if NO_LABEL not in same]
    if not kept:
        raise InputError("has no pair with a label", path=paths[0], remedy="add pairs")
    texts = {code: [tuple(found[place][:2]) for place in kept] for code, found in rows.items()}
    return InferencePairs(texts, [labels[place][0] for place in kept])


def _read_inference_file(path: str) -> dict[str, list[list[str]]]:
    """Returns premise, hypothesis and label of each pair by language, in the order of pairID."""
    lines = list(read_lines(path))
    header, language = lines[0][1].split("\t"), None
    if _COLUMNS[2] in header:
        del lines[0]
    else:
        header, language = list(_COLUMNS), require_code(_stem(path).rpartition(".")[2], path=path)
    found: dict[str, dict[str, list[str]]] = {}
    for number, line in lines:
        row = dict(zip(header, map(strip, line.split("\t")), strict=False))
        code = language or require_code(row.get("language", "en"), path=path, line=number)
        same = row["pairID"] if "language" in row and "pairID" in row else f"{number:09}"
        columns = [row.get(name, "") for name in _COLUMNS]
        if not all(columns):
            problem = "the line has no premise, hypothesis and label"
            raise InputError(problem, path=path, line=number, remedy="separate them by tabs")
        if found.setdefault(code, {}).setdefault(same, columns) is not columns:
            problem = f"is a second pair {same} in '{code}'"
            raise InputError(problem, path=path, line=number, remedy=AGAIN)
    if not found:
        raise InputError("has only a header", path=path, remedy=AGAIN)
    everything = set().union(*found.values())
    for code, rows in found.items():
        if lost := sorted(everything - rows.keys()):
            problem = f"has the pair {lost[0]} in some languages, but not in '{code}'"
            raise InputError(problem, path=path, remedy=AGAIN)
    return {code: [rows[same] for same in sorted(rows)] for code, rows in found.items()}


def find_inference_files(entry: str) -> list[str]:
    """Returns the paths that `read_inference_pairs` reads; raises InputError if there is none."""
    entry = input_path(entry)
    if os.path.isdir(entry):
        found = sorted(glob.glob(os.path.join(glob.escape(entry), "*")))
        found = [path for path in found if _stem(path) != os.path.basename(path)]
    else:
        found = [entry] if os.path.exists(entry) else sorted(glob.glob(entry))
    if not found or not all(map(os.path.isfile, found)):
        problem = "no files <lang>.tsv of premise, hypothesis and label"
        raise InputError(problem, path=entry, remedy="check the path")
    return found


def _stem(path: str) -> str:
    """Returns the name without `.tsv` and compression; the whole name of another file."""
    name = os.path.basename(path)
    base, _ = split_compression(name)
    return base.removesuffix(".tsv") if base.endswith(".tsv") else name


def labels_of(sets: Sequence[InferencePairs]) -> list[str]:
    """Returns the distinct labels, sorted: their places are the classifier's outputs."""
    return sorted({label for pairs in sets for label in pairs.labels})
