"""The task `paraphrase`: do two sentences say the same, such as PAWS-X.

Yang et al. 2019 (arXiv 1908.11828): pairs with nearly the same words. The cosine of a pair decides.
Average precision needs no threshold (as in MTEB, arXiv 2210.07316, section 3.2); accuracy has the
threshold that is best on the dev part of one language, and is zero-shot in the others.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.probes import majority
from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.task import Option
from labse_tf.evaluation.texts import check_text, second_file
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.textio import read_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY_METRIC = "average_precision"
FOLDERS = ("pawsx", "x-final")
UNITS_ARE_LANGUAGES = True
DATA = "{dev,test}.<lang>.tsv of two sentences and 0 or 1, or PAWS-X's <lang>/{dev,test}_2k.tsv"
OPTIONS = (
    Option("source", "language whose dev part gives the threshold (default en)", metavar="LANG"),
)

SOURCE = "en"

_PLAIN = re.compile(r"(?P<part>dev|test)\.(?P<language>[\w-]+)\.tsv")
_OFFICIAL = re.compile(r"(?P<language>[\w-]+)/(?P<part>dev|test)(_2k)?\.tsv")
_HEADER = ("id", "sentence1", "sentence2", "label")
_NO_LABEL = "-"


class Pairs(NamedTuple):
    """The `n` labelled pairs of a file.

    Attributes:
      labels: bool `[n]`, whether both say the same.
      first: `n` sentences.
      second: `n` sentences.
    """

    labels: np.ndarray
    first: list[str]
    second: list[str]


def evaluate(
    encoder: Encoder, data: str | os.PathLike[str], *, source: str = SOURCE
) -> dict[str, Any]:
    """Evaluates an encoder.

    Args:
      encoder: any.
      data: a folder of files.
      source: the language whose dev part gives the threshold.

    Returns:
      The record. `languages`: for each its number of `test` pairs, the `majority`, which is the
      share of its more frequent label, `average_precision` and `accuracy`. `average_precision` and
      `accuracy`: the means over languages. `threshold`: the cosine from which a pair says the same.

    Raises:
      InputError: if the data are missing or broken.

    Example: with an encoder that counts letters.

      >>> Path("paws").mkdir()
      >>> text = "abc d\\tabc d\\t1\\nabc\\txyz\\t0\\n"
      >>> for name in ("dev.en", "test.en", "test.de"):
      ...     _ = Path(f"paws/{name}.tsv").write_text(text)
      >>> evaluate(encoder, "paws")["languages"]["de"]["accuracy"]
      1.0
    """
    files = find_files(data)
    if (source, "dev") not in files:
        raise InputError(
            f"has no dev part of '{source}'", path=data, remedy="add it, or name another: --source"
        )
    tests = [language for language, part in files if part == "test"]
    wanted = [(source, "dev"), *((language, "test") for language in tests)]
    pairs = {key: read_pairs_of_labels(files[key]) for key in wanted}
    everything = itertools.chain.from_iterable(one.first + one.second for one in pairs.values())
    vectors = TextVectors(encoder, everything)
    cosines = {
        key: np.einsum("nd,nd->n", vectors[one.first], vectors[one.second])
        for key, one in pairs.items()
    }
    threshold = best_threshold(cosines[source, "dev"], pairs[source, "dev"].labels)
    languages = {
        language: _scores(cosines[language, "test"], pairs[language, "test"].labels, threshold)
        for language in tests
    }
    means = {
        name: float(np.mean([row[name] for row in languages.values()]))
        for name in ("average_precision", "accuracy")
    }
    return make_record(
        "paraphrase",
        encoder,
        data,
        [files[key] for key in wanted],
        primary_metric=PRIMARY_METRIC,
        directions=("sentence 1 - sentence 2",),
        settings={"source": source},
        scores={**means, "threshold": threshold, "languages": languages},
    )


def find_files(data: str | os.PathLike[str]) -> dict[tuple[str, str], str]:
    """Returns the paths by language and part.

    Raises:
      InputError: if there is no test part, or a part has two files.
    """
    root = Path(data)
    found = {}
    for path in sorted(path for path in root.rglob("*.tsv*") if path.is_file()):
        name, _ = split_compression(path.relative_to(root).as_posix())
        if match := _PLAIN.fullmatch(name) or _OFFICIAL.fullmatch(name):
            key = (match["language"], match["part"])
            if key in found:
                raise second_file(path, found[key], f"{key[1]} part in '{key[0]}'")
            found[key] = str(path)
    if not any(part == "test" for _, part in found):
        raise InputError(
            "holds no files test.<lang>.tsv", path=data, remedy="see `labse eval --help`"
        )
    return found


def read_pairs_of_labels(path: str) -> Pairs:
    """Reads sentence 1, sentence 2, label, or PAWS-X's columns; pairs labelled `-` are left out.

    Raises:
      InputError: as `read_lines`, or if a line is broken, or only one label occurs.
    """
    labels, first, second = [], [], []
    skipped = 0
    for number, line in read_lines(path):
        columns = line.split("\t")
        if number == 1 and tuple(columns) == _HEADER:
            skipped = 1  # The column `id`.
            continue
        columns = columns[skipped:]
        if len(columns) != 3 or columns[2] not in ("0", "1", _NO_LABEL):
            raise InputError(
                "expected sentence 1, sentence 2 and 0 or 1",
                path=path,
                line=number,
                remedy="separate them by tabs",
            )
        if columns[2] != _NO_LABEL:
            labels.append(columns[2] == "1")
            first.append(check_text(columns[0], path, number))
            second.append(check_text(columns[1], path, number))
    if len(set(labels)) < 2:
        raise InputError("has not both labels, 0 and 1", path=path, remedy="add pairs")
    return Pairs(np.array(labels), first, second)


def best_threshold(cosines: np.ndarray, labels: np.ndarray) -> float:
    """Returns the cosine from which most pairs are labelled right; of equal ones, the highest.

    Above all cosines if it is best to call no pair the same.
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
    # Imported here because it takes most of a second, and other tasks do not need it.
    from sklearn.metrics import average_precision_score

    return {
        "test": len(labels),
        "majority": majority(labels),
        "average_precision": float(average_precision_score(labels, cosines)),
        "accuracy": float(np.mean((cosines >= threshold) == labels)),
    }


def units(result: dict[str, Any]) -> dict[str, float]:
    """Returns the average precision in each language."""
    return {code: row["average_precision"] for code, row in result["languages"].items()}


def format_table(result: dict[str, Any]) -> str:
    """Returns a line per language, then the means; times 100."""
    lines = [f"{'':8}{'test':>6}{'majority':>10}{'AP':>8}{'accuracy':>10}"]
    for language, row in result["languages"].items():
        cells = f"{100 * row['majority']:10.1f}{100 * row['average_precision']:8.1f}"
        lines.append(f"{language:8}{row['test']:>6}{cells}{100 * row['accuracy']:10.1f}")
    means = f"{100 * result['average_precision']:8.1f}{100 * result['accuracy']:10.1f}"
    return "\n".join([*lines, f"{'mean':24}{means}"])


def draw(result: dict[str, Any], figure: Figure) -> None:
    """Plots average precision and accuracy by language."""
    languages: dict[str, Any] = result["languages"]
    figure.set_size_inches(1.5 + 0.5 * len(languages), 3.6)
    axes = figure.subplots()
    places: Sequence[float] = np.arange(len(languages))
    for shift, name in ((-0.2, "average_precision"), (0.2, "accuracy")):
        heights = [100 * row[name] for row in languages.values()]
        axes.bar(np.add(places, shift), heights, 0.4, label=name.replace("_", " "))
    axes.set_xticks(places, list(languages), fontsize=8)
    axes.set_ylabel("%", fontsize=8)
    axes.legend(fontsize=8)
