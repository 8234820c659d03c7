"""Classifiers on frozen vectors: logistic regression as in SentEval, small networks as in LASER.

The strengths of logistic regression are scikit-learn's C, the inverse of the weight of the L2
penalty; the test never chooses them. A network is trained on one language and tested on others
(Artetxe and Schwenk 2019, arXiv 1812.10464, sections 4.1 and 4.2): the dev part of its language
chooses the epoch, and the L2 penalty in place of their dropout.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from labse_tf.embedding.protocol import TextVectors
from labse_tf.evaluation.result import Column, Part, Result
from labse_tf.evaluation.task import Option
from labse_tf.progress import Progress

# SentEval's, for scikit-learn: of tasks with nested folds or a dev set, and of TREC and MRPC.
STRENGTHS = tuple(2.0**power for power in range(-2, 4))
STRENGTHS_OF_FOLDS = tuple(2.0**power for power in range(-1, 6))
_MAX_ITERATIONS = 500
_MANY = 2000  # Examples: fewer take less time than processes do to start.

PENALTIES = (1e-4, 1e-2, 1.0)
_EPOCHS = 60
SEEDS = 5
SEEDS_OPTION = Option(
    "seeds", f"classifiers, for mean and spread (default {SEEDS})", type=int, metavar="N", least=1
)
_ACCURACY = Column("accuracy", "accuracy.mean", spread="accuracy.spread", style="bar")
MAJORITY = Column("majority", "majority")


class Examples(NamedTuple):
    """Features `[n, d]`, an array or a scipy sparse matrix; labels `[n]`; weights in the loss."""

    features: Any
    labels: np.ndarray
    weights: np.ndarray | None = None

    def rows(self, places: np.ndarray) -> Examples:
        weights = None if self.weights is None else self.weights[places]
        return Examples(self.features[places], self.labels[places], weights)


def scaled(vectors: TextVectors) -> Callable[[Sequence[str]], np.ndarray]:
    """Returns the features of texts: their unit vectors times the root of the dimensions."""
    scale = np.float32(np.sqrt(vectors.vectors.shape[1]))
    return lambda texts: vectors[texts] * scale


def accuracy(model: Any, examples: Examples) -> float:
    return float(np.mean(model.predict(examples.features) == examples.labels))


def majority(labels: Sequence[Any] | np.ndarray) -> float:
    """Returns the share of the most frequent label."""
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


def nested_folds(examples: Examples, *, folds: int, seed: int) -> list[float]:
    """Returns the accuracy on each fold, where folds of the others chose the strength.

    The folds of many examples are computed by as many processes as there are cores.
    """
    from joblib import Parallel, delayed

    def score(train: np.ndarray, test: np.ndarray) -> float:
        model = fit_with_folds(examples.rows(train), STRENGTHS, folds=folds, seed=seed)
        return accuracy(model, examples.rows(test))

    splits = _splits(examples, folds, seed)
    processes = -1 if len(examples.labels) > _MANY else 1
    return Parallel(n_jobs=processes)(delayed(score)(train, test) for train, test in splits)


def fit_with_folds(train: Examples, strengths: Sequence[float], *, folds: int, seed: int) -> Any:
    """Returns a model trained on all of `train` with the strength that its folds prefer."""
    found = [
        [accuracy(model, train.rows(held_out)) for model in _models(train.rows(rest), strengths)]
        for rest, held_out in _splits(train, folds, seed)
    ]
    # The first of the best: the most regularised.
    return next(_models(train, [strengths[int(np.argmax(np.mean(found, axis=0)))]]))


def fit_with_dev(
    train: Examples,
    dev: Examples,
    strengths: Sequence[float] = STRENGTHS,
    score: Callable[[Any, Examples], float] = accuracy,
) -> Any:
    """Returns the model trained on `train` alone with the highest `score` on `dev`."""
    found = [score(model, dev) for model in _models(train, strengths)]
    return next(_models(train, [strengths[int(np.argmax(found))]]))


def _models(train: Examples, strengths: Sequence[float]) -> Iterator[Any]:
    """Yields one model again and again, each time trained further with the next strength."""
    # Imported here, as scikit-learn everywhere in this package: it takes most of a second.
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(warm_start=True, max_iter=_MAX_ITERATIONS)
    for strength in strengths:
        model.set_params(C=strength)
        with warnings.catch_warnings():
            # Where the last digits of the loss still move, the accuracy does not.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(train.features, train.labels, train.weights)
        yield model


def _splits(examples: Examples, folds: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return splitter.split(np.arange(len(examples.labels)), examples.labels)


class Network(NamedTuple):
    """How a network is trained: `patience` is of epochs without a better accuracy on dev."""

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
) -> tuple[dict[str, float], dict[Any, dict[str, float]]]:
    """Trains a network with each seed and measures its accuracy on every test.

    The first network's accuracy on `dev` chooses the penalty of all. Returns `penalty` and the mean
    `dev_accuracy`; by test the `mean` over seeds, and their standard deviation `spread`.
    """
    with Progress("train classifiers", total=len(PENALTIES) + seeds - 1, unit="run") as progress:
        first = {one: fit(train, dev, network, penalty=one) for one in progress.each(PENALTIES)}
        # The first of the best: the least regularised.
        penalty = max(first, key=lambda one: first[one][1])
        others = progress.each(range(1, seeds))
        fitted = [fit(train, dev, network, penalty=penalty, seed=seed) for seed in others]
    classifiers, scores = zip(first[penalty], *fitted, strict=True)
    found = {}
    for name, make in tests.items():
        examples = make()
        shares = [accuracy(one, examples) for one in classifiers]
        spread = float(np.std(shares, ddof=seeds > 1))
        found[name] = {"mean": float(np.mean(shares)), "spread": spread}
    return {"penalty": penalty, "dev_accuracy": float(np.mean(scores))}, found


def fit(
    train: Examples, dev: Examples, network: Network, *, penalty: float, seed: int = 0
) -> tuple[Any, float]:
    """Returns the network after its best epoch on `dev`, and its accuracy there."""
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


def mean_of_targets(languages: Mapping[str, Any], source: str) -> float:
    """Returns the mean accuracy of the languages that were not trained on, or of `source` alone."""
    targets = [row for language, row in languages.items() if language != source]
    return float(np.mean([row["accuracy"]["mean"] for row in targets or languages.values()]))


def describe_transfer(record: Mapping[str, Any], columns: Sequence[Column] = ()) -> Result:
    """Returns the accuracy in each language and the mean of those not trained on."""
    languages, source = record["languages"], record["settings"]["source"]
    rows = {
        f"{name} (source)" if name == source else name: {"majority": record.get("majority")} | row
        for name, row in languages.items()
    }
    means = {"transfer": {"accuracy": {"mean": record["accuracy"]}}}
    targets = {name: row for name, row in languages.items() if name != source} or languages
    units = {name: row["accuracy"]["mean"] for name, row in targets.items()}
    return Result([Part("", rows, (*columns, MAJORITY, _ACCURACY), means)], units)
