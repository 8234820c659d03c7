"""Logistic regression on frozen vectors, as SentEval has it: the test does not choose the penalty.

The strengths are scikit-learn's C, the inverse of the weight of the L2 penalty.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from labse_tf.embedding.protocol import TextVectors

# SentEval's, for scikit-learn: of tasks with nested folds or a dev set, and of TREC and MRPC.
STRENGTHS = tuple(2.0**power for power in range(-2, 4))
STRENGTHS_OF_FOLDS = tuple(2.0**power for power in range(-1, 6))
_MAX_ITERATIONS = 500
_MANY = 2000  # Examples: fewer take less time than processes do to start.

# (fitted model, examples) -> the higher the better.
Score = Callable[[Any, "Examples"], float]


class Examples(NamedTuple):
    """`n` examples.

    Attributes:
      features: `[n, d]`, an array or a scipy sparse matrix.
      labels: `[n]`.
      weights: `[n]` of the loss, or None for equal ones.
    """

    features: Any
    labels: np.ndarray
    weights: np.ndarray | None = None

    def rows(self, places: np.ndarray) -> Examples:
        weights = None if self.weights is None else self.weights[places]
        return Examples(self.features[places], self.labels[places], weights)


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

    places = np.arange(len(examples.labels))
    processes = -1 if len(places) > _MANY else 1
    return Parallel(n_jobs=processes)(
        delayed(_nested_fold)(examples, train, test, folds=folds, seed=seed)
        for train, test in _folds(folds, seed).split(places, examples.labels)
    )


def _nested_fold(
    examples: Examples, train: np.ndarray, test: np.ndarray, *, folds: int, seed: int
) -> float:
    model = fit_with_folds(examples.rows(train), STRENGTHS, folds=folds, seed=seed)
    return accuracy(model, examples.rows(test))


def fit_with_folds(train: Examples, strengths: Sequence[float], *, folds: int, seed: int) -> Any:
    """Returns a model trained on all of `train` with the strength that its folds prefer."""
    places = np.arange(len(train.labels))
    found = [
        [accuracy(model, train.rows(held_out)) for model in _models(train.rows(rest), strengths)]
        for rest, held_out in _folds(folds, seed).split(places, train.labels)
    ]
    # The first of the best: the most regularised.
    best = int(np.argmax(np.mean(found, axis=0)))
    return next(_models(train, [strengths[best]]))


def fit_with_dev(
    train: Examples, dev: Examples, strengths: Sequence[float] = STRENGTHS, score: Score = accuracy
) -> Any:
    """Returns the model trained on `train` alone that scores best on `dev`."""
    found = [score(model, dev) for model in _models(train, strengths)]
    return next(_models(train, [strengths[int(np.argmax(found))]]))


def _models(train: Examples, strengths: Sequence[float]) -> Iterator[Any]:
    """Yields one model again and again, each time trained further with the next strength."""
    # Imported here because it takes most of a second, and other tasks do not need it.
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


def _folds(folds: int, seed: int) -> Any:
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(folds, shuffle=True, random_state=seed)


def scaled(vectors: TextVectors) -> Callable[[Sequence[str]], np.ndarray]:
    """Returns the features of texts: their unit vectors times the root of the dimensions."""
    scale = np.float32(np.sqrt(vectors.vectors.shape[1]))
    return lambda texts: vectors[texts] * scale
