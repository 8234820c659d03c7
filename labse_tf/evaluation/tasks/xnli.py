"""The task `xnli`: inference in many languages, by a classifier that saw only one of them.

Zero-shot transfer as in LASER (Artetxe and Schwenk 2019, arXiv 1812.10464, section 4.1): a network
with layers of 512 and 384 units on [p, h, p * h, |p - h|] of frozen vectors p of the premise and h
of the hypothesis, trained on the source language, chosen on its dev part, and tested on every
language.
"""

from __future__ import annotations

import functools
import glob
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.errors import InputError
from labse_tf.evaluation import classifiers
from labse_tf.evaluation.result import Result
from labse_tf.evaluation.task import Option, make_record
from labse_tf.evaluation.texts import (
    InferencePairs,
    find_inference_files,
    labels_of,
    read_inference_pairs,
)
from labse_tf.files.corpus_files import find_packed

TYPE = "Classification"
PRIMARY_METRIC = "accuracy"
FOLDERS = ("xnli", "XNLI-1.0")
DATA = (
    "{train,dev,test}.<lang>.tsv of premise, hypothesis, label, or xnli.{dev,test}.tsv, with\n"
    "--train: train on one language, test on every language"
)
OPTIONS = (
    Option("train", "training pairs, instead of those in --data", metavar="FILE"),
    Option("source", "language that is trained on (default en)", metavar="LANG"),
    classifiers.SEEDS_OPTION,
)

SOURCE = "en"
NETWORK = classifiers.Network(hidden=(512, 384), rate=1e-3, batch_size=128, patience=3)


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    train: str | None = None,
    source: str = SOURCE,
    seeds: int = classifiers.SEEDS,
) -> dict[str, Any]:
    """Returns the record of an encoder.

    `languages`: for each `accuracy` with `mean` and `spread` over seeds. `accuracy`: the mean over
    the languages that were not trained on, or of the source if it is alone. `test`: pairs of a
    language; `majority`: the share of the most frequent label; `trained`: pairs, after those that
    are in the dev or test part were left out.
    """
    entries = {"train": train or _entry(data, "train", source)}
    entries |= {part: _entry(data, part) for part in ("dev", "test")}
    if not train and not glob.glob(entries["train"]):
        remedy = "add it, or name a file: --train"
        raise InputError(f"has no train.{source}.tsv", path=data, remedy=remedy)
    sets = {part: read_inference_pairs(entry) for part, entry in entries.items()}
    _check(sets, entries, source)
    training = _without_tests(sets, source, entries["train"])
    test = sets["test"]
    dev = InferencePairs({source: sets["dev"].texts[source]}, sets["dev"].labels)
    rows = (rows for one in (training, dev, test) for rows in one.texts.values())
    texts = itertools.chain.from_iterable(itertools.chain.from_iterable(rows))
    features = classifiers.scaled(TextVectors(encoder, texts))
    facts, found = classifiers.transfer(
        _examples(training, features, source),
        _examples(dev, features, source),
        {one: functools.partial(_examples, test, features, one) for one in test.texts},
        network=NETWORK,
        seeds=seeds,
    )
    languages = {one: {"accuracy": shares} for one, shares in found.items()}
    scores = {"accuracy": classifiers.mean_of_targets(languages, source), "languages": languages}
    counts = {"trained": len(training.labels), "test": len(test.labels)}
    scores |= {**facts, **counts, "majority": classifiers.majority(test.labels)}
    settings = {"train": train, "source": source, "seeds": seeds, "hidden": list(NETWORK.hidden)}
    paths = [path for entry in entries.values() for path in find_inference_files(entry)]
    return make_record("xnli", encoder, data, paths, settings, scores)


def _entry(data: str | os.PathLike[str], part: str, language: str = "*") -> str:
    """Returns what `read_inference_pairs` takes for a part of the data."""
    if official := find_packed(os.path.join(data, f"xnli.{part}.tsv")):
        return glob.escape(official)
    return os.path.join(glob.escape(os.fspath(data)), f"{part}.{language}.tsv*")


def _check(sets: dict[str, InferencePairs], entries: dict[str, str], source: str) -> None:
    for part in ("train", "dev"):
        if source not in sets[part].texts:
            remedy = f"--source may be {', '.join(sets[part].texts)}"
            raise InputError(f"has no pairs in '{source}'", path=entries[part], remedy=remedy)
    known = labels_of([sets["train"]])
    for part in ("dev", "test"):
        if unknown := sorted(set(sets[part].labels) - set(known)):
            problem = f"has the label '{unknown[0]}', which the training pairs have not"
            remedy = f"these have {', '.join(known[:8])}; the third column should be the label"
            raise InputError(problem, path=entries[part], remedy=remedy)


def _without_tests(sets: dict[str, InferencePairs], source: str, path: str) -> InferencePairs:
    """Returns the training pairs in `source` that are in neither dev nor test."""
    seen = {row for part in ("dev", "test") for row in sets[part].texts.get(source, ())}
    rows = zip(sets["train"].texts[source], sets["train"].labels, strict=True)
    kept = [(row, label) for row, label in rows if row not in seen]
    if len({label for _, label in kept}) < 2:
        problem = "has pairs of fewer than two labels that are not in the dev or test part"
        raise InputError(problem, path=path, remedy="name other training pairs: --train")
    return InferencePairs({source: [row for row, _ in kept]}, [label for _, label in kept])


def _examples(
    pairs: InferencePairs, features: Callable[[Sequence[str]], np.ndarray], language: str
) -> classifiers.Examples:
    premise, hypothesis = map(features, zip(*pairs.texts[language], strict=True))
    sides = (premise, hypothesis, premise * hypothesis, np.abs(premise - hypothesis))
    return classifiers.Examples(np.concatenate(sides, axis=1), np.array(pairs.labels))


def describe(record: Mapping[str, Any]) -> Result:
    """Returns the accuracy in each language."""
    return classifiers.describe_transfer(record)
