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
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.errors import InputError
from labse_tf.evaluation.probes import Examples, accuracy, majority, scaled
from labse_tf.evaluation.result import Column, Result
from labse_tf.evaluation.task import Option, make_record
from labse_tf.evaluation.texts import find_files, read_columns
from labse_tf.evaluation.transfer import (
    ACCURACY,
    MAJORITY,
    SEEDS,
    SEEDS_OPTION,
    Network,
    mean_of_targets,
    transfer,
)
from labse_tf.evaluation.transfer import describe as describe_transfer

PRIMARY_METRIC = "accuracy"
FOLDERS = ("mldoc", "sentiment", "classify")
UNITS_ARE_LANGUAGES = True
DATA = (
    "<language>.{train,dev,test}.tsv of label and text (valid: dev; MLDoc's names too):\n"
    "train on one language, test on every language"
)
OPTIONS = (
    Option("source", "language that is trained on (default english, or en)", metavar="LANGUAGE"),
    SEEDS_OPTION,
)

NETWORK = Network(hidden=(10,), rate=0.01, batch_size=32, patience=10)
TRAIN, DEV, TEST = "train", "dev", "test"

_FILE = re.compile(r"([\w-]+)\.(train|valid|dev|test)(?:\.\d+)?(?:\.tsv)?")
# Bytes literals of Python, which MLDoc's generator writes under Python 3.
_BYTES = re.compile(r"b(['\"]).*\1", re.DOTALL)
_COLUMNS = ("label", "text")
_SOURCES = ("english", "en", "eng")


def evaluate(
    encoder: Encoder, data: str | os.PathLike[str], *, source: str | None = None, seeds: int = SEEDS
) -> dict[str, Any]:
    """Evaluates an encoder.

    Returns:
      The record. `languages`: for each with a test part its number of `test` texts, the `majority`,
      which is the share of its most frequent label, and `accuracy` and `macro_f1`, each with `mean`
      and `spread` over seeds. `accuracy`, `macro_f1`: the means over the languages that were not
      trained on, or of the source if it is the only one. `penalty`, `dev_accuracy`: of the
      classifiers.

    Example: with an encoder that counts letters.

      >>> Path("topics").mkdir()
      >>> parts = {"en.train": "aaa zzz", "en.dev": "aa zz", "en.test": "aa z", "fi.test": "aa zz"}
      >>> for name, (one, other) in ((name, text.split()) for name, text in parts.items()):
      ...     _ = Path(f"topics/{name}.tsv").write_text(f"1\\t{one}\\n2\\t{other}\\n")
      >>> evaluate(encoder, "topics")["languages"]["fi"]["accuracy"]
      {'mean': 1.0, 'spread': 0.0}
    """
    files = find_files(data, _FILE, "<language>.test.tsv", key=_language_and_part)
    source = _source(files, source, data)
    texts = {
        (language, part): [(label, _decoded(text)) for label, text in read_columns(path, _COLUMNS)]
        for (language, part), path in files.items()
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
    paths = [files[key] for key in texts]
    directions = (f"{source} -> other languages",)
    settings = {"source": source, "seeds": seeds, "hidden": list(NETWORK.hidden)}
    scores = {
        **means,
        "penalty": found["penalty"],
        "dev_accuracy": found["dev_accuracy"],
        "languages": languages,
    }
    return make_record("classify", encoder, data, paths, directions, settings, scores)


def _language_and_part(match: re.Match[str]) -> tuple[str, str]:
    language, part = match.groups()
    return language, DEV if part == "valid" else part


def _source(files: Collection[tuple[str, str]], asked: str | None, data) -> str:
    if not any(part == TEST for _, part in files):
        raise InputError("has no test part, <language>.test.tsv", path=data, remedy="add one")
    whole = [name for name, part in files if part == TRAIN and (name, DEV) in files]
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
            "has only one label", path=files[source, TRAIN], remedy="at least two are needed"
        )
    for (language, part), rows in texts.items():
        for number, (label, _) in enumerate(rows, 1):
            if label not in known:
                raise InputError(
                    f"the label '{label}' is not in the training part",
                    path=files[language, part],
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


def describe(record: Mapping[str, Any]) -> Result:
    """Returns accuracy and macro F1 in each language."""
    macro_f1 = Column("macro F1", "macro_f1.mean", spread="macro_f1.spread")
    return describe_transfer(record, (Column("test", "test", None), MAJORITY, ACCURACY, macro_f1))
