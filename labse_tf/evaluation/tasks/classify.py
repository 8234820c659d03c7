"""The task `classify`: documents in many languages, by a classifier that saw only one of them.

Zero-shot transfer as on MLDoc (Schwenk and Li 2018; LASER, arXiv 1812.10464, section 4.2): a
network with one hidden layer of 10 units is trained on frozen vectors of the source language,
chosen on its dev part, and tested on every language. The data are files <language>.<part>.tsv of
label and text, or MLDoc's <language>.train.1000, <language>.dev and <language>.test.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.probes import Examples, accuracy, majority, scaled
from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.task import Option
from labse_tf.evaluation.texts import read_columns, second_file
from labse_tf.evaluation.transfer import (
    Network,
    format_figure,
    mean_of_targets,
    target_figures,
    transfer,
)
from labse_tf.files.corpus_files import split_compression

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY_METRIC = "accuracy"
FOLDERS = ("mldoc", "sentiment", "classify")
UNITS_ARE_LANGUAGES = True
DATA = (
    "<language>.{train,dev,test}.tsv of label and text (valid: dev; MLDoc's names too):\n"
    "train on one language, test on every language"
)
OPTIONS = (
    Option("source", "language that is trained on (default english, or en)", metavar="LANGUAGE"),
    Option("seeds", "classifiers, for mean and spread (default 5)", type=int, metavar="N"),
)

SEEDS = 5
NETWORK = Network(hidden=(10,), rate=0.01, batch_size=32, patience=10)
TRAIN, DEV, TEST = "train", "dev", "test"

_NAME = re.compile(r"(?P<language>[\w-]+)\.(?P<part>train|valid|dev|test)(\.\d+)?(\.tsv)?")
# Bytes literals of Python, which MLDoc's generator writes under Python 3.
_BYTES = re.compile(r"b(['\"]).*\1", re.DOTALL)
_COLUMNS = ("label", "text")
_SOURCES = ("english", "en", "eng")


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    source: str | None = None,
    seeds: int = SEEDS,
) -> dict[str, Any]:
    """Evaluates an encoder.

    Args:
      encoder: any.
      data: a folder of files.
      source: the language to train on; None for English.
      seeds: how many classifiers are trained.

    Returns:
      The record. `languages`: for each with a test part its number of `test` texts, the `majority`,
      which is the share of its most frequent label, and `accuracy` and `macro_f1`, each with `mean`
      and `spread` over seeds. `accuracy`, `macro_f1`: the means over the languages that were not
      trained on, or of the source if it is the only one. `penalty`, `dev_accuracy`: of the
      classifiers.

    Raises:
      InputError: if the data are missing or broken.

    Example: with an encoder that counts letters.

      >>> Path("topics").mkdir()
      >>> parts = {"en.train": "aaa zzz", "en.dev": "aa zz", "en.test": "aa z", "fi.test": "aa zz"}
      >>> for name, (one, other) in ((name, text.split()) for name, text in parts.items()):
      ...     _ = Path(f"topics/{name}.tsv").write_text(f"1\\t{one}\\n2\\t{other}\\n")
      >>> evaluate(encoder, "topics")["languages"]["fi"]["accuracy"]
      {'mean': 1.0, 'spread': 0.0}
    """
    if seeds < 1:
        raise InputError(f"--seeds is {seeds}", remedy="give 1 or more")
    files = find_files(data)
    source = _source(files, source, data)
    texts = {
        (language, part): [(label, _decoded(text)) for label, text in read_columns(path, _COLUMNS)]
        for language, parts in files.items()
        for part, path in parts.items()
        if part == TEST or language == source
    }
    _check_labels(texts, source, files)
    vectors = TextVectors(encoder, (text for rows in texts.values() for _, text in rows))
    features = scaled(vectors)
    examples = {
        key: Examples(features([text for _, text in rows]), np.array([label for label, _ in rows]))
        for key, rows in texts.items()
    }
    tests = {language: one for (language, part), one in examples.items() if part == TEST}
    found = transfer(
        examples[source, TRAIN],
        examples[source, DEV],
        {language: lambda one=one: one for language, one in tests.items()},
        network=NETWORK,
        seeds=seeds,
        measure=_measure,
    )
    languages = {
        language: {
            "test": len(one.labels),
            "majority": majority(one.labels),
            **found["tests"][language],
        }
        for language, one in tests.items()
    }
    means = {name: mean_of_targets(languages, source, name) for name in ("accuracy", "macro_f1")}
    return make_record(
        "classify",
        encoder,
        data,
        [files[language][part] for language, part in texts],
        primary_metric=PRIMARY_METRIC,
        directions=(f"{source} -> other languages",),
        settings={"source": source, "seeds": seeds, "hidden": list(NETWORK.hidden)},
        scores={
            **means,
            "penalty": found["penalty"],
            "dev_accuracy": found["dev_accuracy"],
            "languages": languages,
        },
    )


def find_files(data: str | os.PathLike[str]) -> dict[str, dict[str, str]]:
    """Returns the path of each part by language.

    Raises:
      InputError: if there is none, or a part has two.
    """
    found: dict[str, dict[str, str]] = {}
    for path in sorted(Path(data).iterdir() if os.path.isdir(data) else ()):
        name = _NAME.fullmatch(split_compression(path.name)[0])
        if not (name and path.is_file()):
            continue
        part = DEV if name["part"] == "valid" else name["part"]
        parts = found.setdefault(name["language"], {})
        if part in parts:
            raise second_file(path, parts[part], f"{part} part")
        parts[part] = str(path)
    if not any(TEST in parts for parts in found.values()):
        raise InputError(
            "holds no files <language>.test.tsv", path=data, remedy="see `labse eval --help`"
        )
    return found


def _source(files: dict[str, dict[str, str]], asked: str | None, data) -> str:
    whole = [name for name, parts in files.items() if {TRAIN, DEV} <= parts.keys()]
    wanted = (asked,) if asked else _SOURCES
    source = next((name for name in wanted if name in whole), None)
    if source is None:
        raise InputError(
            f"has no train and dev part of '{asked or _SOURCES[0]}'",
            path=data,
            remedy=f"--source may be {', '.join(whole)}" if whole else "add them",
        )
    return source


def _check_labels(texts, source: str, files) -> None:
    known = {label for label, _ in texts[source, TRAIN]}
    if len(known) < 2:
        raise InputError(
            "has only one label", path=files[source][TRAIN], remedy="at least two are needed"
        )
    for (language, part), rows in texts.items():
        for number, (label, _) in enumerate(rows, 1):
            if label not in known:
                raise InputError(
                    f"the label '{label}' is not in the training part",
                    path=files[language][part],
                    line=number,
                    remedy=f"that has {', '.join(sorted(known)[:8])}",
                )


def _decoded(text: str) -> str:
    """Returns the text of a bytes literal, and any other text as it is."""
    if _BYTES.fullmatch(text):
        try:
            return ast.literal_eval(text).decode("utf-8").strip() or text
        except (AttributeError, SyntaxError, ValueError):
            return text
    return text


def _measure(network: Any, test: Examples) -> dict[str, float]:
    from sklearn.metrics import f1_score

    predicted = network.predict(test.features)
    macro = f1_score(test.labels, predicted, average="macro", zero_division=0)
    return {"accuracy": accuracy(network, test), "macro_f1": float(macro)}


def units(result: dict[str, Any]) -> dict[str, float]:
    """Returns the accuracy in each language that was not trained on."""
    return target_figures(result, "accuracy")


def format_table(result: dict[str, Any]) -> str:
    """Returns a line per language, then the mean of those not trained on; times 100."""
    source = result["settings"]["source"]
    lines = [f"{'':14}{'test':>6}{'majority':>10}{'accuracy':>16}{'macro F1':>16}"]
    for language, row in result["languages"].items():
        name = f"{language} (source)" if language == source else language
        cells = "".join(f"{format_figure(row[metric]):>16}" for metric in ("accuracy", "macro_f1"))
        lines.append(f"{name:14}{row['test']:>6}{100 * row['majority']:>10.1f}{cells}")
    lines.append(
        f"{'transfer':30}{100 * result['accuracy']:>16.1f}{100 * result['macro_f1']:>16.1f}"
    )
    return "\n".join(lines)


def draw(result: dict[str, Any], figure: Figure) -> None:
    """Plots the accuracy in each language, its spread, and the majority as a line."""
    languages: dict[str, Any] = result["languages"]
    figure.set_size_inches(1.5 + 0.4 * len(languages), 3.6)
    axes = figure.subplots()
    means, spreads = (
        [100 * row["accuracy"][name] for row in languages.values()] for name in ("mean", "spread")
    )
    places: Sequence[int] = range(len(languages))
    axes.bar(places, means, yerr=spreads)
    for place, row in enumerate(languages.values()):
        line = [100 * row["majority"]] * 2
        axes.plot([place - 0.4, place + 0.4], line, color="black", linewidth=0.8)
    axes.set_xticks(places, list(languages), rotation=90, fontsize=8)
    axes.set_ylabel("accuracy, % (line: majority)", fontsize=8)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
