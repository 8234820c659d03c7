"""The files of the task `senteval`: the project's own, or those that SentEval itself downloads.

SentEval's data/downstream/get_transfer_data.bash gives names and columns, and the loaders beside
its senteval/engine.py the encodings (github.com/facebookresearch/SentEval).
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from labse_tf.errors import InputError
from labse_tf.evaluation.texts import check_text, read_columns
from labse_tf.files.corpus_files import find_packed, split_compression
from labse_tf.files.textio import empty_file, read_lines

# Each line: label, score if there is one, and one sentence or two.
Rows = list[tuple[str, ...]]

_SENTENCE = ("label", "sentence")
_PAIR = ("label", "sentence 1", "sentence 2")
_SICK = ("label", "score", "sentence 1", "sentence 2")
_LABELS = {".pos": "1", ".neg": "0", ".subjective": "1", ".objective": "0"}
_QUESTION = re.compile(r"(\w+):\S+ (.+)")


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
    """The files of a task.

    Attributes:
      parts: for each part, the paths of its files.
      read: returns the rows of the file with a path.
    """

    parts: Mapping[str, tuple[str, ...]]
    read: Callable[[str], Rows]

    @property
    def paths(self) -> list[str]:
        return [path for paths in self.parts.values() for path in paths]


def _read_one_label(path: str) -> Rows:
    """Reads the sentences of one label, which the name of the file ends in."""
    label = _LABELS[os.path.splitext(split_compression(path)[0])[1]]
    # Lines may be empty. SentEval's examples embed a full stop for them.
    return [
        (label, check_text(line.strip() or ".", path, number))
        for number, line in read_lines(path, encoding="latin-1")
    ]


def _read_questions(path: str) -> Rows:
    rows = []
    for number, line in read_lines(path, encoding="latin-1"):
        match = _QUESTION.fullmatch(line)
        if not match:
            raise InputError(
                f"'{line[:40]}' is not LABEL:label question",
                path=path,
                line=number,
                remedy="fetch the file again",
            )
        rows.append((match[1], check_text(match[2], path, number)))
    return rows


def _read_sentiment(path: str) -> Rows:
    return [(label, sentence) for sentence, label in read_columns(path, ("sentence", "label"))]


def _read_table(path: str, *, columns: tuple[str, ...]) -> Rows:
    """Reads the columns with these names in the first line."""
    _, first = next(read_lines(path))
    # The paraphrase corpus begins with a byte order mark.
    names = [name.strip() for name in first.removeprefix("\ufeff").split("\t")]
    if missing := [column for column in columns if column not in names]:
        raise InputError(
            f"the first line names no column '{missing[0]}'",
            path=path,
            line=1,
            remedy=f"fetch the file again: it needs {', '.join(columns)}",
        )
    rows = read_columns(path, names)[1:]
    if not rows:
        raise empty_file(path)
    places = [names.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in rows]


def _ours(columns: tuple[str, ...], **parts: tuple[str, ...]) -> Files:
    return Files(parts, functools.partial(read_columns, names=columns))


def _downloaded_table(*columns: str, **parts: tuple[str, ...]) -> Files:
    return Files(parts, functools.partial(_read_table, columns=columns))


def _two_labels(*names: str) -> Files:
    return Files({"test": names}, _read_one_label)


_SICKS = (
    _ours(_SICK, train=("SICK.train.tsv",), dev=("SICK.trial.tsv",), test=("SICK.test.tsv",)),
    _downloaded_table(
        *("entailment_judgment", "relatedness_score", "sentence_A", "sentence_B"),
        train=("SICK/SICK_train.txt",),
        dev=("SICK/SICK_trial.txt",),
        test=("SICK/SICK_test_annotated.txt",),
    ),
)
_DOWNLOADED_FOLDS = {
    "MR": _two_labels("MR/rt-polarity.pos", "MR/rt-polarity.neg"),
    "CR": _two_labels("CR/custrev.pos", "CR/custrev.neg"),
    "SUBJ": _two_labels("SUBJ/subj.subjective", "SUBJ/subj.objective"),
    "MPQA": _two_labels("MPQA/mpqa.pos", "MPQA/mpqa.neg"),
}
# The project's files of each task, and SentEval's. Without a training part, folds take its place.
TASKS: dict[str, tuple[Files, Files]] = {
    **{
        name: (_ours(_SENTENCE, test=(f"{name}.tsv",)), files)
        for name, files in _DOWNLOADED_FOLDS.items()
    },
    "SST2": (
        _ours(
            _SENTENCE,
            train=("SST2.phrases_train.tsv",),
            dev=("SST2.dev.tsv",),
            test=("SST2.test.tsv",),
        ),
        Files(
            {part: (f"SST/binary/sentiment-{part}",) for part in ("train", "dev", "test")},
            _read_sentiment,
        ),
    ),
    "TREC": (
        _ours(_SENTENCE, train=("TREC.train.tsv",), test=("TREC.test.tsv",)),
        Files(
            {"train": ("TREC/train_5500.label",), "test": ("TREC/TREC_10.label",)}, _read_questions
        ),
    ),
    "MRPC": (
        _ours(_PAIR, train=("MRPC.train.tsv", "MRPC.val.tsv"), test=("MRPC.test.tsv",)),
        _downloaded_table(
            *("Quality", "#1 String", "#2 String"),
            train=("MRPC/msr_paraphrase_train.txt",),
            test=("MRPC/msr_paraphrase_test.txt",),
        ),
    ),
    "SICK-E": _SICKS,
    "SICK-R": _SICKS,
}


def find_tasks(data: str | os.PathLike[str]) -> dict[str, Files]:
    """Returns the files of each task that is in the folder, or in `downstream` in it.

    Raises:
      InputError: if there is none, or a task lacks one of its files.
    """
    below = os.path.join(data, "downstream")
    folders = (os.fspath(data), below if os.path.isdir(below) else os.fspath(data))
    found: dict[str, Files] = {}
    for name, layouts in TASKS.items():
        for folder, files in zip(folders, layouts, strict=True):
            if name not in found and (there := _find_parts(name, folder, files)):
                found[name] = there
    if not found:
        raise InputError(
            "has no file of any task of SentEval",
            path=data,
            remedy="it needs MR.tsv or others that `labse eval senteval --help` names, or "
            "SentEval's own download, MR/rt-polarity.pos and so on",
        )
    return found


def _find_parts(name: str, folder: str, files: Files) -> Files | None:
    """Returns the files with their paths; None if none is there."""
    paths = {one: find_packed(os.path.join(folder, one)) for one in files.paths}
    if not any(paths.values()):
        return None
    if missing := [one for one, path in paths.items() if path is None]:
        raise InputError(
            f"has no {missing[0]}", path=folder, remedy=f"{name} needs {', '.join(paths)}"
        )
    parts = {part: tuple(paths[one] for one in names) for part, names in files.parts.items()}
    return files._replace(parts=parts)


def read_task(name: str, files: Files, folds: int) -> dict[str, Texts]:
    """Returns the parts of a task.

    Raises:
      InputError: if a file is broken, a label is in the test part alone, or a label that is to be
        divided into folds has too few examples.
    """
    parts = {part: _read_part(files, paths) for part, paths in files.parts.items()}
    training = "train" if "train" in parts else "test"
    counts = dict(zip(*np.unique(parts[training].labels, return_counts=True), strict=True))
    for part, texts in parts.items():
        if unknown := sorted(set(texts.labels.tolist()) - set(counts)):
            raise InputError(
                f"has the label '{unknown[0]}', which the training part has not",
                path=files.parts[part][0],
                remedy="fetch the files again: each label needs training examples",
            )
    path = files.parts[training][0]
    # Folds within folds need at least folds * folds / (folds - 1) examples of a label.
    least = 1 if "dev" in parts else folds + 2
    label, count = min(counts.items(), key=lambda item: item[1])
    if len(counts) < 2 or count < least:
        raise InputError(
            f"the label '{label}' has {count} of {len(parts[training].labels)} examples",
            path=path,
            remedy=f"at least two labels are needed, each with {least} examples or more",
        )
    if name == "MRPC" and counts.keys() != {"0", "1"}:
        raise InputError(
            f"has the labels {', '.join(sorted(counts))}",
            path=path,
            remedy="MRPC has 0, and 1 for paraphrases",
        )
    return parts


def _read_part(files: Files, paths: tuple[str, ...]) -> Texts:
    rows = [row for path in paths for row in files.read(path)]
    labels, *sides = map(list, zip(*rows, strict=True))
    scores = None
    if len(rows[0]) == len(_SICK):
        scores = np.array([_score(text, paths[0]) for text in sides.pop(0)])
        if np.ptp(scores) == 0:
            raise InputError("all scores are equal", path=paths[0], remedy="fetch the file again")
    return Texts(np.array(labels), tuple(sides), scores)


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
