"""The task `paraphrase`: do two sentences say the same, such as PAWS-X.

Yang et al. 2019 (arXiv 1908.11828): pairs with nearly the same words. The cosine of a pair decides.
Average precision needs no threshold (as in MTEB, arXiv 2210.07316, section 3.2); accuracy has the
threshold that is best on the dev part of one language, and is zero-shot in the others.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.errors import InputError
from labse_tf.evaluation.classifiers import MAJORITY, majority
from labse_tf.evaluation.result import Column, Part, Result, mean_of
from labse_tf.evaluation.task import Option, make_record
from labse_tf.evaluation.texts import NO_LABEL, ScoredPairs, find_files, read_columns
from labse_tf.files.textio import read_lines

TYPE = "PairClassification"
PRIMARY_METRIC = "average_precision"
FOLDERS = ("pawsx", "x-final")
DATA = "{dev,test}.<lang>.tsv of two sentences and 0 or 1, or PAWS-X's <lang>/{dev,test}_2k.tsv"
SOURCE = "en"
OPTIONS = (
    Option("source", "language whose dev part gives the threshold (default en)", metavar="LANG"),
)

_FILE = re.compile(r"(dev|test)\.([\w-]+)\.tsv|([\w-]+)/(dev|test)(?:_2k)?\.tsv")
_COLUMNS = ("sentence1", "sentence2", "label")
_HEADER = ("id", *_COLUMNS)


def evaluate(
    encoder: Encoder, data: str | os.PathLike[str], *, source: str = SOURCE
) -> dict[str, Any]:
    """Returns the record of an encoder.

    `languages`: for each its number of `test` pairs, the `majority`, which is the share of its more
    frequent label, `average_precision` and `accuracy`. `average_precision` and `accuracy`: the
    means over languages. `threshold`: the cosine from which a pair says the same.
    """
    files = find_files(data, _FILE, "test.<lang>.tsv", key=_part_and_language)
    tests = [language for part, language in files if part == "test"]
    for part, language in (("dev", source), ("test", tests[0] if tests else "<lang>")):
        if (part, language) not in files:
            remedy = "add it, or name another: --source" if part == "dev" else "add it"
            raise InputError(f"has no {part} part of '{language}'", path=data, remedy=remedy)
    wanted = [("dev", source), *(("test", language) for language in tests)]
    pairs = {key: read_labelled_pairs(files[key]) for key in wanted}
    everything = itertools.chain.from_iterable(one.first + one.second for one in pairs.values())
    vectors = TextVectors(encoder, everything)
    dev = pairs.pop(("dev", source))
    threshold = best_threshold(dev.cosines(vectors), dev.scores)
    languages = {
        language: _scores(one.cosines(vectors), one.scores, threshold)
        for (_, language), one in pairs.items()
    }
    means = mean_of(languages.values(), ("average_precision", "accuracy"))
    paths = [files[key] for key in wanted]
    scores = {**means, "threshold": threshold, "languages": languages}
    return make_record("paraphrase", encoder, data, paths, {"source": source}, scores)


def _part_and_language(match: re.Match[str]) -> tuple[str, str]:
    return match[1] or match[4], match[2] or match[3]


def read_labelled_pairs(path: str) -> ScoredPairs:
    """Reads sentence 1, sentence 2, label, or PAWS-X's columns; pairs labelled `-` are left out.

    The scores are bool: whether both say the same.

    Raises:
      InputError: as `read_columns`, or if a label is another one, or only one occurs.
    """
    has_header = tuple(next(read_lines(path))[1].split("\t")) == _HEADER
    rows = read_columns(path, _HEADER if has_header else _COLUMNS, only=True)
    for number, row in enumerate(rows, 1):
        if row[-1] not in ("0", "1", NO_LABEL) and not (has_header and number == 1):
            problem = "expected sentence 1, sentence 2 and 0 or 1"
            raise InputError(problem, path=path, line=number, remedy="separate them by tabs")
    rows = [row[-3:] for row in rows if row[-1] in ("0", "1")]
    if len({label for *_, label in rows}) < 2:
        raise InputError("has not both labels, 0 and 1", path=path, remedy="add pairs")
    first, second, labels = map(list, zip(*rows, strict=True))
    return ScoredPairs(np.array(labels) == "1", first, second)


def best_threshold(cosines: np.ndarray, labels: np.ndarray) -> float:
    """Returns the cosine from which most pairs are labelled right; of equal ones, the highest.

    It is above all cosines if it is best to call no pair the same.
    """
    order = np.argsort(-cosines, kind="stable")
    ordered, right = cosines[order], labels[order]
    # If so many pairs from the first, 0 to n, are called the same, and those behind different.
    same = np.concatenate([[0], np.cumsum(right)])
    wrongly = np.concatenate([[0], np.cumsum(~right)])
    hits = same + wrongly[-1] - wrongly
    # Equal cosines are called alike.
    possible = np.concatenate([[True], ordered[1:] < ordered[:-1], [True]])
    best = int(np.argmax(np.where(possible, hits, -1)))
    return float(ordered[best - 1] if best else np.nextafter(ordered[0], np.inf))


def _scores(cosines: np.ndarray, labels: np.ndarray, threshold: float) -> dict[str, Any]:
    from sklearn.metrics import average_precision_score

    return {
        "test": len(labels),
        "majority": majority(labels),
        "average_precision": float(average_precision_score(labels, cosines)),
        "accuracy": float(np.mean((cosines >= threshold) == labels)),
    }


def describe(record: Mapping[str, Any]) -> Result:
    """Returns average precision and accuracy in each language."""
    columns = (
        Column("test", "test", None),
        MAJORITY,
        Column("AP", "average_precision", style="bar"),
        Column("accuracy", "accuracy", style="bar"),
    )
    units = {code: row["average_precision"] for code, row in record["languages"].items()}
    return Result([Part("", record["languages"], columns, {"mean": record})], units)
