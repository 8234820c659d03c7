"""The task `senteval`: English classification and relatedness on frozen vectors.

The tasks and protocols are SentEval's (Conneau and Kiela 2018, arXiv 1803.05449). Logistic
regression is trained on the vectors; the encoder is not. MR, CR, SUBJ, MPQA: ten folds, each tested
by a classifier whose regularisation ten folds of the other nine chose. TREC, MRPC: ten folds of the
training part choose it. SST2, SICK-E, SICK-R: the dev part chooses it. A pair of sentences with
vectors u, v has the features |u - v| and u * v. The penalties suit numbers of about 1, so unit
vectors are multiplied by the square root of their dimensions.

SICK-R predicts a distribution over the scores 1 to 5, whose mean is compared with the human score.
The target is Tai et al. 2015's (arXiv 1503.00075, equation 15): 3.6 is 40 % of 3 and 60 % of 4. It
is trained with cross-entropy, where SentEval has the squared error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.evaluation import probes
from labse_tf.evaluation.probes import Examples
from labse_tf.evaluation.result import Column, Part, Result
from labse_tf.evaluation.senteval_texts import Texts, find_tasks, read_task
from labse_tf.evaluation.task import Option, make_record
from labse_tf.progress import Progress

PRIMARY_METRIC = "average"
FOLDERS = ("senteval",)
DATA = (
    "MR.tsv, CR, SUBJ, MPQA; SST2.{phrases_train,dev,test}.tsv; TREC.{train,test}.tsv;\n"
    "MRPC.{train,val,test}.tsv; SICK.{train,trial,test}.tsv, those that there are:\n"
    "label and sentence, of MRPC two sentences, of SICK label, score, two sentences;\n"
    "or downstream, as SentEval's own get_transfer_data.bash makes it"
)
FOLDS, SEED = 10, 1111
OPTIONS = (
    Option(
        "baseline", "score this on the same data too (words and pairs of words)", choices=("tfidf",)
    ),
    Option(
        "folds",
        f"of the training texts; 5 take a quarter of the time (default {FOLDS})",
        type=int,
        metavar="N",
        least=2,
    ),
    Option("seed", f"of the folds (default {SEED})", type=int, metavar="N"),
)

# Texts -> features, [n, d]: an array or a sparse matrix.
Features = Callable[[Sequence[str]], Any]
# (parts, features, folds, seed) -> figures.
Score = Callable[[Mapping[str, Texts], Features, int, int], dict[str, float]]


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    baseline: str | None = None,
    folds: int = FOLDS,
    seed: int = SEED,
) -> dict[str, Any]:
    """Evaluates an encoder, and a baseline on the same folds.

    Returns:
      The record. `tasks`: for each its number of `test` examples, the `majority`, which is the
      share of its most frequent label, and by system, `model` and the baseline, `accuracy` with
      its `standard_error`, of MRPC also `f1`, of SICK-R instead `pearson` and `spearman`.
      `average`: by system, the mean over tasks of accuracy or Pearson's correlation, from 0 to 1.

    Example: with an encoder that counts letters.

      >>> Path("tasks").mkdir()
      >>> text = "".join(f"0\\taaa {'b' * n}\\n1\\tzzz {'y' * n}\\n" for n in range(9))
      >>> _ = Path("tasks/CR.tsv").write_text(text)
      >>> evaluate(encoder, "tasks", folds=3)["tasks"]["CR"]["model"]["accuracy"]
      1.0
    """
    files = find_tasks(data)
    texts = {name: read_task(name, one, folds) for name, one in files.items()}
    everything = (text for parts in texts.values() for part in parts.values() for text in part.all)
    features = probes.scaled(TextVectors(encoder, everything))
    # The training texts of a task -> its features.
    systems: dict[str, Callable[[Sequence[str]], Features]] = {"model": lambda training: features}
    if baseline:
        systems[baseline] = _tfidf
    tasks: dict[str, dict[str, Any]] = {}
    with Progress("classify", total=len(texts), unit="task") as progress:
        for name, parts in progress.each(texts.items()):
            test = parts["test"]
            training = parts.get("train", test).all
            tasks[name] = {
                "test": len(test.labels),
                "majority": probes.majority(test.labels),
                **{
                    system: SCORES[name](parts, fit(training), folds, seed)
                    for system, fit in systems.items()
                },
            }
    average = {
        system: float(np.mean([main_figure(scores[system]) for scores in tasks.values()]))
        for system in systems
    }
    paths = sorted({path for one in files.values() for path in one.paths})
    settings = {"baseline": baseline, "folds": folds, "seed": seed}
    scores = {"average": average, "tasks": tasks}
    return make_record("senteval", encoder, data, paths, ("vector -> label",), settings, scores)


def main_figure(scores: Mapping[str, float]) -> float:
    """Returns the accuracy, or of SICK-R Pearson's correlation."""
    return scores["pearson"] if "pearson" in scores else scores["accuracy"]


def _tfidf(training: Sequence[str]) -> Features:
    # Imported here because it takes most of a second, and other tasks do not need it.
    from sklearn.feature_extraction.text import TfidfVectorizer

    # Words as strings between spaces: the tasks' texts have spaces around punctuation.
    vectorizer = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), sublinear_tf=True)
    return vectorizer.fit(training).transform


def _examples(texts: Texts, features: Features) -> Examples:
    sides = [features(side) for side in texts.sides]
    return Examples(sides[0] if len(sides) == 1 else _pair_features(*sides), texts.labels)


def _pair_features(first: Any, second: Any) -> Any:
    if isinstance(first, np.ndarray):
        return np.concatenate([np.abs(first - second), first * second], axis=1)
    from scipy.sparse import hstack

    return hstack([abs(first - second), first.multiply(second)], format="csr")


def _nested(parts, features, folds: int, seed: int) -> dict[str, float]:
    found = probes.nested_folds(_examples(parts["test"], features), folds=folds, seed=seed)
    return _accuracy(float(np.mean(found)), len(parts["test"].labels))


def _folds(parts, features, folds: int, seed: int) -> dict[str, float]:
    train, test = (_examples(parts[part], features) for part in ("train", "test"))
    model = probes.fit_with_folds(train, probes.STRENGTHS_OF_FOLDS, folds=folds, seed=seed)
    found = _accuracy(probes.accuracy(model, test), len(test.labels))
    if len(parts["test"].sides) == 2:
        from sklearn.metrics import f1_score

        predicted = model.predict(test.features)
        found["f1"] = float(f1_score(test.labels, predicted, pos_label="1", zero_division=0))
    return found


def _dev(parts, features, folds: int, seed: int) -> dict[str, float]:
    train, dev, test = (_examples(parts[part], features) for part in ("train", "dev", "test"))
    model = probes.fit_with_dev(train, dev)
    return _accuracy(probes.accuracy(model, test), len(test.labels))


def _accuracy(share: float, examples: int) -> dict[str, float]:
    return {"accuracy": share, "standard_error": float(np.sqrt(share * (1 - share) / examples))}


def _relatedness(parts, features, folds: int, seed: int) -> dict[str, float]:
    from scipy.stats import pearsonr, spearmanr

    examples = {
        part: _examples(texts, features)._replace(labels=texts.scores)
        for part, texts in parts.items()
    }

    def pearson(model: Any, dev: Examples) -> float:
        expected = _expected_score(model, dev)
        # Constant predictions have no correlation: score 0.
        return float(pearsonr(expected, dev.labels).statistic) if np.ptp(expected) else 0.0

    train = score_distribution(examples["train"])
    model = probes.fit_with_dev(train, examples["dev"], score=pearson)
    predicted = _expected_score(model, examples["test"])
    return {
        "pearson": pearson(model, examples["test"]),
        "spearman": float(spearmanr(predicted, examples["test"].labels).statistic),
    }


def score_distribution(examples: Examples) -> Examples:
    """Returns each example twice, with the whole scores below and above its own, weighted."""
    below = np.floor(examples.labels)
    above_share = examples.labels - below
    doubled = np.tile(np.arange(len(below)), 2)
    return Examples(
        examples.features[doubled],
        np.concatenate([below, below + 1]),
        np.concatenate([1 - above_share, above_share]),
    ).rows(np.flatnonzero(np.concatenate([1 - above_share, above_share])))


def _expected_score(model: Any, examples: Examples) -> np.ndarray:
    return model.predict_proba(examples.features) @ model.classes_


SCORES: dict[str, Score] = {
    **dict.fromkeys(("MR", "CR", "SUBJ", "MPQA"), _nested),
    **dict.fromkeys(("TREC", "MRPC"), _folds),
    **dict.fromkeys(("SST2", "SICK-E"), _dev),
    "SICK-R": _relatedness,
}


def describe(record: Mapping[str, Any]) -> Result:
    """Returns the accuracy in each task, or of SICK-R Pearson's correlation (r), by system."""
    systems = list(record["average"])
    rows = {}
    for name, scores in record["tasks"].items():
        is_correlation = "pearson" in scores["model"]
        rows[f"{name} (r)" if is_correlation else name] = {
            "test": scores["test"],
            "majority": None if is_correlation else scores["majority"],
            **{one: scores[one] | {"main": main_figure(scores[one])} for one in systems},
        }
    columns = (
        Column("test", "test", None),
        Column("majority", "majority", style="mark"),
        *(Column(one, f"{one}.main", 1, f"{one}.standard_error", "bar") for one in systems),
    )
    means = {"average": {one: {"main": record["average"][one]} for one in systems}}
    units = {name: main_figure(scores["model"]) for name, scores in record["tasks"].items()}
    return Result([Part("", rows, columns, means)], units)
