"""Zero-shot transfer: a small network on frozen vectors of one language, tested on others.

As in LASER (Artetxe and Schwenk 2019, arXiv 1812.10464, sections 4.1 and 4.2), only the source
language's dev part chooses: here the epoch, and the L2 penalty in place of their dropout.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from labse_tf.evaluation.probes import Examples, accuracy
from labse_tf.evaluation.result import Column, Part, Result
from labse_tf.evaluation.task import Option
from labse_tf.progress import Progress

SEEDS = 5
SEEDS_OPTION = Option(
    "seeds", f"classifiers, for mean and spread (default {SEEDS})", type=int, metavar="N", least=1
)

PENALTIES = (1e-4, 1e-2, 1.0)
_EPOCHS = 60


class Network(NamedTuple):
    """How a classifier is trained.

    Attributes:
      hidden: units of each hidden layer.
      rate: Adam's learning rate.
      batch_size: examples.
      patience: epochs without a better accuracy on dev, after which training ends.
    """

    hidden: Sequence[int]
    rate: float
    batch_size: int
    patience: int


def transfer(
    train: Examples,
    dev: Examples,
    tests: Mapping[Any, Callable[[], Examples]],
    *,
    network: Network,
    seeds: int,
    measure: Callable[[Any, Examples], dict[str, float]],
) -> dict[str, Any]:
    """Trains with each seed and measures every test.

    Args:
      train: of the source language.
      dev: of the same language.
      tests: by name, what makes the examples; they are measured one after another.
      network: its layers and training.
      seeds: how many networks; the first one's dev accuracy chooses the penalty of all.
      measure: returns the figures of a classifier on a test's examples.

    Returns:
      `penalty`; `dev_accuracy`, its mean; `tests`: by name and figure the `mean` over seeds, and
      their standard deviation `spread`, 0 for one seed.
    """
    with Progress("train classifiers", total=len(PENALTIES) + seeds - 1, unit="run") as progress:
        first = {}
        for penalty in PENALTIES:
            first[penalty] = fit(train, dev, network, penalty=penalty)
            progress.update()
        # The first of the best: the least regularised.
        penalty = max(first, key=lambda one: first[one][1])
        classifiers = [first[penalty]]
        for seed in range(1, seeds):
            classifiers.append(fit(train, dev, network, penalty=penalty, seed=seed))
            progress.update()
    found = {}
    for name, make in tests.items():
        examples = make()
        found[name] = [measure(one, examples) for one, _ in classifiers]
    return {
        "penalty": penalty,
        "dev_accuracy": float(np.mean([score for _, score in classifiers])),
        "tests": {name: _summary(rows) for name, rows in found.items()},
    }


def fit(
    train: Examples, dev: Examples, network: Network, *, penalty: float, seed: int = 0
) -> tuple[Any, float]:
    """Returns the classifier after its best epoch on `dev`, and its accuracy there."""
    # Imported here because it takes most of a second, and other tasks do not need it.
    from sklearn.neural_network import MLPClassifier

    classifier = MLPClassifier(
        tuple(network.hidden),
        alpha=penalty,
        batch_size=min(network.batch_size, len(train.labels)),
        learning_rate_init=network.rate,
        # Not a number: each epoch would begin with it again, and have the same batches.
        random_state=np.random.RandomState(seed),
    )
    labels = np.unique(train.labels)
    best, best_score, waited = None, -1.0, 0
    for _ in range(_EPOCHS):
        classifier.partial_fit(train.features, train.labels, classes=labels)
        score = accuracy(classifier, dev)
        waited += 1
        if score > best_score:
            best, best_score, waited = copy.deepcopy(classifier), score, 0
        if waited == network.patience:
            break
    return best, best_score


def mean_of_targets(languages: Mapping[str, Any], source: str, figure: str) -> float:
    """Returns the mean over the languages that were not trained on, or of `source` if alone."""
    targets = [row for language, row in languages.items() if language != source]
    return float(np.mean([row[figure]["mean"] for row in targets or languages.values()]))


def describe(
    record: Mapping[str, Any], columns: Sequence[Column], parts: Sequence[Part] = ()
) -> Result:
    """Returns the figures of each language, the mean of those not trained on, and more parts."""
    languages, source = record["languages"], record["settings"]["source"]
    rows = {
        f"{name} (source)" if name == source else name: {"majority": record.get("majority")} | row
        for name, row in languages.items()
    }
    means = {"transfer": {name: {"mean": record.get(name)} for name in ("accuracy", "macro_f1")}}
    targets = {name: row for name, row in languages.items() if name != source} or languages
    units = {name: row["accuracy"]["mean"] for name, row in targets.items()}
    return Result([Part("", rows, columns, means), *parts], units)


ACCURACY = Column("accuracy", "accuracy.mean", spread="accuracy.spread", style="bar")
MAJORITY = Column("majority", "majority", style="mark")


def _summary(rows: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "mean": float(np.mean([row[name] for row in rows])),
            "spread": float(np.std([row[name] for row in rows], ddof=len(rows) > 1)),
        }
        for name in rows[0]
    }
