"""Zero-shot transfer: a small network on frozen vectors of one language, tested on others.

As in LASER (Artetxe and Schwenk 2019, arXiv 1812.10464, sections 4.1 and 4.2), only the source
language's dev part chooses: here the epoch, and the L2 penalty in place of their dropout.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from labse_tf.evaluation.probes import Examples, accuracy
from labse_tf.progress import Progress

PENALTIES = (1e-4, 1e-2, 1.0)
_EPOCHS, _PATIENCE, _BATCH = 60, 10, 32

# (network, examples of one test) -> figures.
Measure = Callable[[Any, Examples], dict[str, float]]


def transfer(
    train: Examples,
    dev: Examples,
    tests: Mapping[str, Examples],
    *,
    hidden: Sequence[int],
    rate: float,
    seeds: int,
    measure: Measure,
) -> dict[str, Any]:
    """Trains with each seed and measures every test.

    Args:
      train: of the source language.
      dev: of the same language.
      tests: by name.
      hidden: units of each hidden layer.
      rate: Adam's learning rate.
      seeds: how many networks; the first one's dev accuracy chooses the penalty of all.
      measure: gives each test's figures.

    Returns:
      `penalty`; `dev_accuracy`, its mean; `tests`: by name and figure the `mean` over seeds, and
      their standard deviation `spread`, 0 for one seed.
    """
    with Progress("train classifiers", total=len(PENALTIES) + seeds - 1, unit="run") as progress:
        first = {}
        for penalty in PENALTIES:
            first[penalty] = fit(train, dev, hidden=hidden, rate=rate, penalty=penalty)
            progress.update()
        # The first of the best: the least regularised.
        penalty = max(first, key=lambda one: first[one][1])
        networks = [first[penalty]]
        for seed in range(1, seeds):
            network = fit(train, dev, hidden=hidden, rate=rate, penalty=penalty, seed=seed)
            networks.append(network)
            progress.update()
    found = {
        name: [measure(network, test) for network, _ in networks] for name, test in tests.items()
    }
    return {
        "penalty": penalty,
        "dev_accuracy": float(np.mean([score for _, score in networks])),
        "tests": {name: _summary(rows) for name, rows in found.items()},
    }


def fit(
    train: Examples,
    dev: Examples,
    *,
    hidden: Sequence[int],
    rate: float,
    penalty: float,
    seed: int = 0,
) -> tuple[Any, float]:
    """Returns the network after its best epoch on `dev`, and its accuracy there.

    Training ends when dev accuracy has not risen for 10 epochs, or after 60.
    """
    # Imported here because it takes most of a second, and other tasks do not need it.
    from sklearn.neural_network import MLPClassifier

    network = MLPClassifier(
        tuple(hidden),
        alpha=penalty,
        batch_size=min(_BATCH, len(train.labels)),
        learning_rate_init=rate,
        random_state=seed,
    )
    labels = np.unique(train.labels)
    best, best_score, waited = None, -1.0, 0
    for _ in range(_EPOCHS):
        network.partial_fit(train.features, train.labels, classes=labels)
        score = accuracy(network, dev)
        waited += 1
        if score > best_score:
            best, best_score, waited = copy.deepcopy(network), score, 0
        if waited == _PATIENCE:
            break
    return best, best_score


def _summary(rows: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "mean": float(np.mean([row[name] for row in rows])),
            "spread": float(np.std([row[name] for row in rows], ddof=len(rows) > 1)),
        }
        for name in rows[0]
    }
