"""The files that SentEval itself downloads, and their rows as in the project's own files.

SentEval's data/downstream/get_transfer_data.bash gives names and columns, and the loaders beside
its senteval/engine.py the encodings (github.com/facebookresearch/SentEval).
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from labse_tf.errors import InputError
from labse_tf.evaluation.texts import check_text, read_columns
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.textio import empty_file, read_lines

# Each line: label, score if there is one, and one sentence or two.
Rows = list[tuple[str, ...]]

_FOLDER = "downstream"
_LABELS = {".pos": "1", ".neg": "0", ".subjective": "1", ".objective": "0"}
_QUESTION = re.compile(r"(\w+):\S+ (.+)")


class Download(NamedTuple):
    """The files of a task.

    Attributes:
      parts: for each part, the paths of its files in the folder.
      read: returns the rows of the file with a path.
    """

    parts: Mapping[str, tuple[str, ...]]
    read: Callable[[str], Rows]


def folder_of(data: str | os.PathLike[str]) -> str:
    """Returns the folder `downstream` in `data`, or `data` if there is none."""
    folder = os.path.join(data, _FOLDER)
    return folder if os.path.isdir(folder) else os.fspath(data)


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


_SICK = Download(
    {
        "train": ("SICK/SICK_train.txt",),
        "dev": ("SICK/SICK_trial.txt",),
        "test": ("SICK/SICK_test_annotated.txt",),
    },
    functools.partial(
        _read_table,
        columns=("entailment_judgment", "relatedness_score", "sentence_A", "sentence_B"),
    ),
)

DOWNLOADS = {
    "MR": Download({"test": ("MR/rt-polarity.pos", "MR/rt-polarity.neg")}, _read_one_label),
    "CR": Download({"test": ("CR/custrev.pos", "CR/custrev.neg")}, _read_one_label),
    "SUBJ": Download({"test": ("SUBJ/subj.subjective", "SUBJ/subj.objective")}, _read_one_label),
    "MPQA": Download({"test": ("MPQA/mpqa.pos", "MPQA/mpqa.neg")}, _read_one_label),
    "SST2": Download(
        {part: (f"SST/binary/sentiment-{part}",) for part in ("train", "dev", "test")},
        _read_sentiment,
    ),
    "TREC": Download(
        {"train": ("TREC/train_5500.label",), "test": ("TREC/TREC_10.label",)}, _read_questions
    ),
    "MRPC": Download(
        {part: (f"MRPC/msr_paraphrase_{part}.txt",) for part in ("train", "test")},
        functools.partial(_read_table, columns=("Quality", "#1 String", "#2 String")),
    ),
    "SICK-E": _SICK,
    "SICK-R": _SICK,
}
