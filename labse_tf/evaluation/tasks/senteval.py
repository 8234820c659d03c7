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

Files are the project's own, or those that SentEval itself downloads: its script
data/downstream/get_transfer_data.bash gives names and columns, and the loaders beside its
senteval/engine.py the encodings (github.com/facebookresearch/SentEval).
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.errors import InputError
from labse_tf.evaluation import classifiers
from labse_tf.evaluation.classifiers import Examples
from labse_tf.evaluation.result import Column, Part, Result
from labse_tf.evaluation.task import Option, make_record
from labse_tf.evaluation.texts import AGAIN, check_text, read_columns
from labse_tf.files.corpus_files import find_packed, split_compression
from labse_tf.files.textio import empty_file, read_lines
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
_BASELINE = "score this on the same data too (words and pairs of words)"
_FOLDS = f"of the training texts; 5 take a quarter of the time (default {FOLDS})"
OPTIONS = (
    Option("baseline", _BASELINE, choices=("tfidf",)),
    Option("folds", _FOLDS, type=int, metavar="N", least=2),
    Option("seed", f"of the folds (default {SEED})", type=int, metavar="N"),
)

# Texts -> features, [n, d]: an array or a sparse matrix.
Features = Callable[[Sequence[str]], Any]
# Each line: label, score if there is one, and one sentence or two.
Rows = list[tuple[str, ...]]

_SICK = ("label", "score", "sentence 1", "sentence 2")
_LABELS = {".pos": "1", ".neg": "0", ".subjective": "1", ".objective": "0"}
_QUESTION = re.compile(r"(\w+):\S+ (.+)")


class Texts(NamedTuple):
    """Labels `[n]`, strings; one list of `n` sentences, or two; scores `[n]`, of SICK."""

    labels: np.ndarray
    sides: tuple[list[str], ...]
    scores: np.ndarray | None = None

    @property
    def all(self) -> list[str]:
        return [text for side in self.sides for text in side]


class Files(NamedTuple):
    """The paths of the files of each part of a task, and the function that reads such a file."""

    parts: Mapping[str, tuple[str, ...]]
    read: Callable[[str], Rows]

    @property
    def paths(self) -> list[str]:
        return [path for paths in self.parts.values() for path in paths]


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    baseline: str | None = None,
    folds: int = FOLDS,
    seed: int = SEED,
) -> dict[str, Any]:
    """Returns the record of an encoder, and a baseline on the same folds.

    `tasks`: for each its number of `test` examples, the `majority`, which is the share of its most
    frequent label, and by system, `model` and the baseline, `accuracy` with its `standard_error`,
    of MRPC also `f1`, of SICK-R instead `pearson` and `spearman`. `average`: by system, the mean
    over tasks of accuracy or Pearson's correlation, from 0 to 1.
    """
    files = find_tasks(data)
    texts = {name: read_task(name, one, folds) for name, one in files.items()}
    everything = (text for parts in texts.values() for part in parts.values() for text in part.all)
    features = classifiers.scaled(TextVectors(encoder, everything))
    # The training texts of a task -> its features.
    systems: dict[str, Callable[[Sequence[str]], Features]] = {"model": lambda training: features}
    if baseline:
        systems[baseline] = _tfidf
    tasks: dict[str, dict[str, Any]] = {}
    with Progress("classify", total=len(texts), unit="task") as progress:
        for name, parts in progress.each(texts.items()):
            test = parts["test"]
            training = parts.get("train", test).all
            tasks[name] = {"test": len(test.labels), "majority": classifiers.majority(test.labels)}
            for system, fit in systems.items():
                tasks[name][system] = _score(name, parts, fit(training), folds, seed)
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
    from sklearn.feature_extraction.text import TfidfVectorizer

    # Words as strings between spaces: the tasks' texts have spaces around punctuation.
    vectorizer = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), sublinear_tf=True)
    return vectorizer.fit(training).transform


def _score(
    name: str, parts: Mapping[str, Texts], features: Features, folds: int, seed: int
) -> dict[str, float]:
    """Returns the figures of a task; its parts tell how the regularisation is chosen."""
    examples = {part: _examples(texts, features) for part, texts in parts.items()}
    if name == "SICK-R":
        scores = {part: texts.scores for part, texts in parts.items()}
        return _relatedness(
            {part: one._replace(labels=scores[part]) for part, one in examples.items()}
        )
    test = examples["test"]
    if "train" not in examples:
        share = float(np.mean(classifiers.nested_folds(test, folds=folds, seed=seed)))
    else:
        if "dev" in examples:
            model = classifiers.fit_with_dev(examples["train"], examples["dev"])
        else:
            strengths = classifiers.STRENGTHS_OF_FOLDS
            model = classifiers.fit_with_folds(examples["train"], strengths, folds=folds, seed=seed)
        share = classifiers.accuracy(model, test)
    error = float(np.sqrt(share * (1 - share) / len(test.labels)))
    found = {"accuracy": share, "standard_error": error}
    if name == "MRPC":
        from sklearn.metrics import f1_score

        predicted = model.predict(test.features)
        found["f1"] = float(f1_score(test.labels, predicted, pos_label="1", zero_division=0))
    return found


def _examples(texts: Texts, features: Features) -> Examples:
    first, *others = (features(side) for side in texts.sides)
    if others and isinstance(first, np.ndarray):
        pairs = [np.abs(first - others[0]), first * others[0]]
        return Examples(np.concatenate(pairs, axis=1), texts.labels)
    if others:
        from scipy.sparse import hstack

        first = hstack([abs(first - others[0]), first.multiply(others[0])], format="csr")
    return Examples(first, texts.labels)


def _relatedness(examples: Mapping[str, Examples]) -> dict[str, float]:
    from scipy.stats import pearsonr, spearmanr

    def expected(model: Any, some: Examples) -> np.ndarray:
        return model.predict_proba(some.features) @ model.classes_

    def pearson(model: Any, some: Examples) -> float:
        scores = expected(model, some)
        # Constant predictions have no correlation: score 0.
        return float(pearsonr(scores, some.labels).statistic) if np.ptp(scores) else 0.0

    train, dev, test = (examples[part] for part in ("train", "dev", "test"))
    model = classifiers.fit_with_dev(score_distribution(train), dev, score=pearson)
    spearman = spearmanr(expected(model, test), test.labels).statistic
    return {"pearson": pearson(model, test), "spearman": float(spearman)}


def score_distribution(examples: Examples) -> Examples:
    """Returns each example twice, with the whole scores below and above its own, weighted."""
    below = np.floor(examples.labels)
    above_share = examples.labels - below
    weights = np.concatenate([1 - above_share, above_share])
    doubled = np.tile(np.arange(len(below)), 2)
    both = Examples(examples.features[doubled], np.concatenate([below, below + 1]), weights)
    return both.rows(np.flatnonzero(weights))


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
        classifiers.MAJORITY,
        *(Column(one, f"{one}.main", 1, f"{one}.standard_error", "bar") for one in systems),
    )
    means = {"average": {one: {"main": record["average"][one]} for one in systems}}
    units = {name: main_figure(scores["model"]) for name, scores in record["tasks"].items()}
    return Result([Part("", rows, columns, means)], units)


def _read_one_label(path: str) -> Rows:
    """Reads the sentences of one label, which the name of the file ends in."""
    label = _LABELS[os.path.splitext(split_compression(path)[0])[1]]
    # Lines may be empty. SentEval's examples embed a full stop for them.
    lines = read_lines(path, encoding="latin-1")
    return [(label, check_text(line.strip() or ".", path, number)) for number, line in lines]


def _read_questions(path: str) -> Rows:
    rows = []
    for number, line in read_lines(path, encoding="latin-1"):
        match = _QUESTION.fullmatch(line)
        if not match:
            problem = f"'{line[:40]}' is not LABEL:label question"
            raise InputError(problem, path=path, line=number, remedy=AGAIN)
        rows.append((match[1], check_text(match[2], path, number)))
    return rows


def _read_sentiment(path: str) -> Rows:
    return [(label, sentence) for sentence, label in read_columns(path, ("sentence", "label"))]


def _read_table(path: str, *, columns: tuple[str, ...]) -> Rows:
    """Reads the columns with these names in the first line."""
    _, first = next(read_lines(path))
    # The paraphrase corpus begins with a byte order mark.
    names = [name.strip() for name in first.removeprefix("\ufeff").split("\t")]
    if missing := [column for column in columns if column not in names]:
        problem = f"the first line names no column '{missing[0]}'"
        remedy = f"{AGAIN}: it needs {', '.join(columns)}"
        raise InputError(problem, path=path, line=1, remedy=remedy)
    rows = read_columns(path, names)[1:]
    if not rows:
        raise empty_file(path)
    places = [names.index(column) for column in columns]
    return [tuple(row[place] for place in places) for row in rows]


def _files(read: Callable[[str], Rows], names: str) -> Files:
    """Returns files that are named as `<part>=<name>`, separated by spaces."""
    parts: dict[str, tuple[str, ...]] = {}
    for word in names.split():
        part, _, name = word.partition("=")
        parts[part] = (*parts.get(part, ()), name)
    return Files(parts, read)


_read_sentences = functools.partial(read_columns, names=("label", "sentence"))
_read_pairs = functools.partial(read_columns, names=("label", "sentence 1", "sentence 2"))
_read_sick = functools.partial(read_columns, names=_SICK)
_read_mrpc_table = functools.partial(_read_table, columns=("Quality", "#1 String", "#2 String"))
_read_sick_table = functools.partial(
    _read_table, columns=("entailment_judgment", "relatedness_score", "sentence_A", "sentence_B")
)
_OURS = {
    **{name: (_read_sentences, f"test={name}.tsv") for name in ("MR", "CR", "SUBJ", "MPQA")},
    "SST2": (_read_sentences, "train=SST2.phrases_train.tsv dev=SST2.dev.tsv test=SST2.test.tsv"),
    "TREC": (_read_sentences, "train=TREC.train.tsv test=TREC.test.tsv"),
    "MRPC": (_read_pairs, "train=MRPC.train.tsv train=MRPC.val.tsv test=MRPC.test.tsv"),
    "SICK-E": (_read_sick, "train=SICK.train.tsv dev=SICK.trial.tsv test=SICK.test.tsv"),
}
_THEIRS = {
    "MR": (_read_one_label, "test=MR/rt-polarity.pos test=MR/rt-polarity.neg"),
    "CR": (_read_one_label, "test=CR/custrev.pos test=CR/custrev.neg"),
    "SUBJ": (_read_one_label, "test=SUBJ/subj.subjective test=SUBJ/subj.objective"),
    "MPQA": (_read_one_label, "test=MPQA/mpqa.pos test=MPQA/mpqa.neg"),
    "SST2": (
        _read_sentiment,
        " ".join(f"{part}=SST/binary/sentiment-{part}" for part in ("train", "dev", "test")),
    ),
    "TREC": (_read_questions, "train=TREC/train_5500.label test=TREC/TREC_10.label"),
    "MRPC": (
        _read_mrpc_table,
        "train=MRPC/msr_paraphrase_train.txt test=MRPC/msr_paraphrase_test.txt",
    ),
    "SICK-E": (
        _read_sick_table,
        "train=SICK/SICK_train.txt dev=SICK/SICK_trial.txt test=SICK/SICK_test_annotated.txt",
    ),
}
# The project's files of each task, and SentEval's. Without a training part, folds take its place.
TASKS = {name: (_files(*_OURS[name]), _files(*_THEIRS[name])) for name in _OURS}
TASKS["SICK-R"] = TASKS["SICK-E"]


def find_tasks(data: str | os.PathLike[str]) -> dict[str, Files]:
    """Returns the files of each task that is in the folder, or in `downstream` in it.

    Raises:
      InputError: if there is none, or a task lacks one of its files.
    """
    below = os.path.join(data, "downstream")
    folders = (os.fspath(data), below if os.path.isdir(below) else os.fspath(data))
    found: dict[str, Files] = {}
    for name, layouts in TASKS.items():
        for folder, files in zip(folders, layouts, strict=True):
            paths = {one: find_packed(os.path.join(folder, one)) for one in files.paths}
            if name in found or not any(paths.values()):
                continue
            if missing := [one for one, path in paths.items() if path is None]:
                remedy = f"{name} needs {', '.join(paths)}"
                raise InputError(f"has no {missing[0]}", path=folder, remedy=remedy)
            parts = {part: tuple(map(paths.get, names)) for part, names in files.parts.items()}
            found[name] = files._replace(parts=parts)
    if not found:
        raise InputError(
            "has no file of any task of SentEval",
            path=data,
            remedy="it needs MR.tsv or others that `labse eval senteval --help` names, or "
            "SentEval's own download, MR/rt-polarity.pos and so on",
        )
    return found


def read_task(name: str, files: Files, folds: int) -> dict[str, Texts]:
    """Returns the parts of a task.

    Raises:
      InputError: if a file is broken, a label is in the test part alone, or a label that is to be
        divided into folds has too few examples.
    """
    parts = {part: _read_part(files, paths) for part, paths in files.parts.items()}
    training = "train" if "train" in parts else "test"
    counts = dict(zip(*np.unique(parts[training].labels, return_counts=True), strict=True))
    for part, texts in parts.items():
        if unknown := sorted(set(texts.labels.tolist()) - set(counts)):
            problem = f"has the label '{unknown[0]}', which the training part has not"
            remedy = "fetch the files again: each label needs training examples"
            raise InputError(problem, path=files.parts[part][0], remedy=remedy)
    path = files.parts[training][0]
    # Folds within folds need at least folds * folds / (folds - 1) examples of a label.
    least = 1 if "dev" in parts else folds + 2
    label, count = min(counts.items(), key=lambda item: item[1])
    if len(counts) < 2 or count < least:
        problem = f"the label '{label}' has {count} of {len(parts[training].labels)} examples"
        remedy = f"at least two labels are needed, each with {least} examples or more"
        raise InputError(problem, path=path, remedy=remedy)
    if name == "MRPC" and counts.keys() != {"0", "1"}:
        problem = f"has the labels {', '.join(sorted(counts))}"
        raise InputError(problem, path=path, remedy="MRPC has 0, and 1 for paraphrases")
    return parts


def _read_part(files: Files, paths: tuple[str, ...]) -> Texts:
    rows = [row for path in paths for row in files.read(path)]
    labels, *sides = map(list, zip(*rows, strict=True))
    scores = None
    if len(rows[0]) == len(_SICK):
        scores = np.array([_read_score(text, paths[0]) for text in sides.pop(0)])
        if np.ptp(scores) == 0:
            raise InputError("all scores are equal", path=paths[0], remedy=AGAIN)
    return Texts(np.array(labels), tuple(sides), scores)


def _read_score(text: str, path: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = 0.0
    if not 1 <= score <= 5:
        problem = f"the score '{text[:40]}' is not from 1 to 5"
        raise InputError(problem, path=path, remedy=AGAIN)
    return score
