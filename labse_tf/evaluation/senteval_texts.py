"""The files of the task `senteval`, and what is in them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labse_tf.errors import InputError
from labse_tf.evaluation.texts import read_columns
from labse_tf.files.corpus_files import find_packed


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
    {"train": ("SICK.train",), "dev": ("SICK.trial",), "test": ("SICK.test",)},
)
_SST2 = {"train": ("SST2.phrases_train",), "dev": ("SST2.dev",), "test": ("SST2.test",)}

# Where there is no training part, folds take its place.
TASKS = {
    **{name: Files(_SENTENCE, {"test": (name,)}) for name in ("MR", "CR", "SUBJ", "MPQA")},
    "SST2": Files(_SENTENCE, _SST2),
    "TREC": Files(_SENTENCE, {"train": ("TREC.train",), "test": ("TREC.test",)}),
    "MRPC": Files(_PAIR, {"train": ("MRPC.train", "MRPC.val"), "test": ("MRPC.test",)}),
    "SICK-E": _SICK,
    "SICK-R": _SICK,
}


def find_files(data: str | os.PathLike[str]) -> dict[str, dict[str, list[str]]]:
    """Returns the paths of each part of each task that is there.

    Raises:
      InputError: if there is none, or a task lacks one of its files.
    """
    found = {}
    for name, task in TASKS.items():
        paths = {
            part: [find_packed(os.path.join(data, f"{stem}.tsv")) for stem in stems]
            for part, stems in task.parts.items()
        }
        there = [path is not None for part in paths.values() for path in part]
        if any(there):
            found[name] = paths
        if any(there) and not all(there):
            stems = [stem for part in task.parts.values() for stem in part]
            missing = stems[there.index(False)]
            raise InputError(
                f"has no {missing}.tsv", path=data, remedy=f"{name} needs {', '.join(stems)}"
            )
    if not found:
        raise InputError(
            "has no file of any task of SentEval", path=data, remedy="see `labse eval --help`"
        )
    return found


def read_task(name: str, files: Mapping[str, Sequence[str]], folds: int) -> dict[str, Texts]:
    """Returns the parts of a task.

    Raises:
      InputError: if a file is broken, a label is in the test part alone, or a label that is to be
        divided into folds has too few examples.
    """
    columns = TASKS[name].columns
    parts = {part: _read_part(paths, columns) for part, paths in files.items()}
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


def _read_part(paths: Sequence[str], columns: tuple[str, ...]) -> Texts:
    rows = [row for path in paths for row in read_columns(path, columns)]
    by_column = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    scores = None
    if "score" in columns:
        scores = np.array([_score(text, paths[0]) for text in by_column.pop("score")])
        if np.ptp(scores) == 0:
            raise InputError("all scores are equal", path=paths[0], remedy="fetch the file again")
    labels = np.array(by_column.pop("label"))
    return Texts(labels, tuple(by_column.values()), scores)


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
