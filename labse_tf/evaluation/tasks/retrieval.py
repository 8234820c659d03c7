"""The task `retrieval`: find each sentence's translation in a pool, in both directions.

The data are bitext files, `DIR/<lang>.tsv[.gz]`; the pool of a language is its own pairs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.errors import InputError
from labse_tf.evaluation.bitext import accuracies, all_cosines
from labse_tf.evaluation.result import Column, Part, Result, mean_of
from labse_tf.evaluation.task import Option, make_record
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.textio import read_pairs
from labse_tf.progress import Progress

TYPE = "BitextMining"
PRIMARY_METRIC = "average"
FOLDERS = ("retrieval",)
DATA = "<lang>.tsv: each sentence's translation among the file's, both directions"
MAX_CANDIDATES = 500
_MOST = f"pairs of a language used, from the first (default {MAX_CANDIDATES})"
OPTIONS = (
    Option("baseline", "score this on the same data too (character n-grams)", choices=("tfidf",)),
    Option("max_candidates", _MOST, type=int, metavar="N", least=1),
)


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    baseline: str | None = None,
    max_candidates: int = MAX_CANDIDATES,
) -> dict[str, Any]:
    """Returns the record of an encoder, and a baseline on the same pools.

    `languages`: for each its `pairs` and, by system, `model` and the baseline, the accuracies
    `to_english` and `from_english`; `average`: by system, their means over languages.
    """
    pools = read_pools(data, max_candidates)
    texts = (text for pool in pools.values() for row in pool for text in row)
    vectors = TextVectors(encoder, texts)
    # (sources, targets) -> similarities of every source and every target, [n, m].
    systems: dict[str, Callable[[Sequence[str], Sequence[str]], np.ndarray]] = {
        "model": lambda sources, targets: all_cosines(vectors[sources], vectors[targets])
    }
    if baseline:
        systems[baseline] = tfidf_similarities
    languages: dict[str, dict[str, Any]] = {}
    with Progress("evaluate", total=len(pools), unit="language") as progress:
        for language, rows in progress.each(pools.items()):
            english, foreign = zip(*rows, strict=True)
            languages[language] = {"pairs": len(rows)} | {
                name: accuracies(measure(foreign, english)) for name, measure in systems.items()
            }
    average = {name: mean_of([row[name] for row in languages.values()]) for name in systems}
    files = [file.path for file in find_corpus_files([os.fspath(data)], kind=BITEXT)]
    settings = {"baseline": baseline, "max_candidates": max_candidates, "ties": "not found"}
    scores = {"average": average, "max_candidates": max_candidates, "languages": languages}
    return make_record("retrieval", encoder, data, files, settings, scores)


def read_pools(
    data: str | os.PathLike[str], max_candidates: int = MAX_CANDIDATES
) -> dict[str, list[tuple[str, str]]]:
    """Returns each language's first pairs of English and foreign text, from all its files.

    Raises:
      InputError: if the data are missing or broken.
    """
    pools: dict[str, list[tuple[str, str]]] = {}
    for file in find_corpus_files([os.fspath(data)], kind=BITEXT):
        if file.format != "tsv":
            remedy = "name a folder of <lang>.tsv"
            raise InputError("evaluation reads TSV files", path=file.path, remedy=remedy)
        pool = pools.setdefault(file.language, [])
        for _, english, foreign in read_pairs(file.path, swapped=file.swapped):
            if len(pool) < max_candidates:
                pool.append((english, foreign))
    return pools


def tfidf_similarities(sources: Sequence[str], targets: Sequence[str]) -> np.ndarray:
    """Returns the cosines of TF-IDF vectors of 1 to 4 characters: float `[n, m]`.

    This baseline needs no training. It finds translations that share letters: names, numbers, loan
    words, related languages. Document frequencies are computed from the pool itself, both sides
    together.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True)
    vectors = vectorizer.fit_transform([*sources, *targets])
    return (vectors[: len(sources)] @ vectors[len(sources) :].T).toarray()


def describe(record: Mapping[str, Any]) -> Result:
    """Returns the accuracy in each language, by system and direction."""
    columns = [Column("pairs", "pairs", None)]
    for system in record["average"]:
        columns += [
            Column(f"{system} xx-en", f"{system}.to_english", style="point"),
            Column("en-xx", f"{system}.from_english", style="point"),
        ]
    rows = record["languages"]
    units = {code: float(np.mean(list(row["model"].values()))) for code, row in rows.items()}
    return Result([Part("", rows, columns, {"average": record["average"]})], units)
