"""The files of the task `senteval`, and what is in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labse_tf.errors import InputError
from labse_tf.evaluation.senteval_download import DOWNLOADS, Rows, folder_of
from labse_tf.evaluation.texts import read_columns
from labse_tf.files.corpus_files import find_packed, split_compression


class Texts(NamedTuple):
    """`n` labelled sentences, or pairs of sentences.

    Attributes:
      labels: `[n]`, strings.
      sides: one list of `n` sentences, or two.
      scores: `[n]`, of SICK.
    """

    labels: np.ndarray
    sides: tuple[list[str], ...]
    scores: np.ndarray | None = None

    @property
    def all(self) -> list[str]:
        return [text for side in self.sides for text in side]


class Files(NamedTuple):
    """The columns of a task, and the names of the files of each part."""

    columns: tuple[str, ...]
    parts: Mapping[str, tuple[str, ...]]


_SENTENCE = ("label", "sentence")
_PAIR = ("label", "sentence 1", "sentence 2")
_SICK = Files(
    ("label", "score", "sentence 1", "sentence 2"),
    {"train": ("SICK.train.tsv",), "dev": ("SICK.trial.tsv",), "test": ("SICK.test.tsv",)},
)
_SST2 = {"train": ("SST2.phrases_train.tsv",), "dev": ("SST2.dev.tsv",), "test": ("SST2.test.tsv",)}
_TREC = {"train": ("TREC.train.tsv",), "test": ("TREC.test.tsv",)}
_MRPC = {"train": ("MRPC.train.tsv", "MRPC.val.tsv"), "test": ("MRPC.test.tsv",)}

# Where there is no training part, folds take its place.
TASKS = {
    **{name: Files(_SENTENCE, {"test": (f"{name}.tsv",)}) for name in ("MR", "CR", "SUBJ", "MPQA")},
    "SST2": Files(_SENTENCE, _SST2),
    "TREC": Files(_SENTENCE, _TREC),
    "MRPC": Files(_PAIR, _MRPC),
    "SICK-E": _SICK,
    "SICK-R": _SICK,
}


def find_files(data: str | os.PathLike[str]) -> dict[str, dict[str, list[str]]]:
    """Returns the paths of each part of each task that is there.

    They are the project's own files, or those of SentEval's download.

    Raises:
      InputError: if there is none, or a task lacks one of its files.
    """
    found = {}
    for name, task in TASKS.items():
        paths = _find_parts(name, os.fspath(data), task.parts)
        paths = paths or _find_parts(name, folder_of(data), DOWNLOADS[name].parts)
        if paths:
            found[name] = paths
    if not found:
        raise InputError(
            "has no file of any task of SentEval",
            path=data,
            remedy="it needs MR.tsv or others that `labse eval --help` names, or SentEval's own "
            "download, MR/rt-polarity.pos and so on",
        )
    return found


def _find_parts(
    name: str, folder: str, parts: Mapping[str, tuple[str, ...]]
) -> dict[str, list[str]] | None:
    """Returns the paths of a task's files in one layout; None if none is there."""
    paths = {
        part: [find_packed(os.path.join(folder, one)) for one in parts[part]] for part in parts
    }
    there = [path is not None for part in paths.values() for path in part]
    if not any(there):
        return None
    if not all(there):
        names = [one for part in parts.values() for one in part]
        raise InputError(
            f"has no {names[there.index(False)]}",
            path=folder,
            remedy=f"{name} needs {', '.join(names)}",
        )
    return paths


def read_task(name: str, files: Mapping[str, Sequence[str]], folds: int) -> dict[str, Texts]:
    """Returns the parts of a task.

    Raises:
      InputError: if a file is broken, a label is in the test part alone, or a label that is to be
        divided into folds has too few examples.
    """
    parts = {part: _read_part(name, paths) for part, paths in files.items()}
    training = "train" if "train" in parts else "test"
    counts = dict(zip(*np.unique(parts[training].labels, return_counts=True), strict=True))
    for part, texts in parts.items():
        if unknown := sorted(set(texts.labels.tolist()) - set(counts)):
            raise InputError(
                f"has the label '{unknown[0]}', which the training part has not",
                path=files[part][0],
                remedy="fetch the files again: each label needs training examples",
            )
    # Folds within folds need at least folds * folds / (folds - 1) examples of a label.
    least = 1 if "dev" in parts else folds + 2
    label, count = min(counts.items(), key=lambda item: item[1])
    if len(counts) < 2 or count < least:
        raise InputError(
            f"the label '{label}' has {count} of {len(parts[training].labels)} examples",
            path=files[training][0],
            remedy=f"at least two labels are needed, each with {least} examples or more",
        )
    if name == "MRPC" and counts.keys() != {"0", "1"}:
        raise InputError(
            f"has the labels {', '.join(sorted(counts))}",
            path=files[training][0],
            remedy="MRPC has 0, and 1 for paraphrases",
        )
    return parts


def _read_part(name: str, paths: Sequence[str]) -> Texts:
    columns = TASKS[name].columns
    rows = [row for path in paths for row in _read_rows(name, path)]
    by_column = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    scores = None
    if "score" in columns:
        scores = np.array([_score(text, paths[0]) for text in by_column.pop("score")])
        if np.ptp(scores) == 0:
            raise InputError("all scores are equal", path=paths[0], remedy="fetch the file again")
    labels = np.array(by_column.pop("label"))
    return Texts(labels, tuple(by_column.values()), scores)


def _read_rows(name: str, path: str) -> Rows:
    if split_compression(path)[0].endswith(".tsv"):
        return read_columns(path, TASKS[name].columns)
    return DOWNLOADS[name].read(path)


def _score(text: str, path: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = 0.0
    if not 1 <= score <= 5:
        raise InputError(
            f"the score '{text[:40]}' is not from 1 to 5", path=path, remedy="fetch the file again"
        )
    return score
