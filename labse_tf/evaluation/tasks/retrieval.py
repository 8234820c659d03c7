"""The task `retrieval`: find each sentence's translation in a pool, in both directions.

The data are bitext files, `DIR/<lang>.tsv[.gz]`; the pool of a language is its own pairs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.bitext import accuracies
from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.task import Option
from labse_tf.evaluation.tfidf import tfidf_similarities
from labse_tf.files.corpus_files import BITEXT, find_corpus_files
from labse_tf.files.textio import read_pairs
from labse_tf.progress import Progress

PRIMARY_METRIC = "average"
FOLDERS = ("retrieval",)
UNITS_ARE_LANGUAGES = True
DATA = "<lang>.tsv: each sentence's translation among the file's, both directions"
OPTIONS = (
    Option("baseline", "score this on the same data too (character n-grams)", choices=("tfidf",)),
    Option(
        "max_candidates",
        "pairs of a language used, from the first (default 500)",
        type=int,
        metavar="N",
    ),
)

MAX_CANDIDATES = 500

# (sources, targets) -> similarities of every source and every target, [n, m].
Similarities = Callable[[Sequence[str], Sequence[str]], np.ndarray]


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    baseline: str | None = None,
    max_candidates: int = MAX_CANDIDATES,
) -> dict[str, Any]:
    """Evaluates an encoder, and a baseline on the same pools.

    Args:
      encoder: any.
      data: a folder of bitext files.
      baseline: one of BASELINES.
      max_candidates: as `read_pools`.

    Returns:
      The record, with the result of `evaluate_systems` for the systems `model` and `baseline`.

    Raises:
      InputError: as `read_pools`.

    Example: with an encoder that counts letters; the first column is English.

      >>> Path("dev").mkdir()
      >>> _ = Path("dev/de.tsv").write_text("Hello world.\\tHallo Welt.\\nA cat.\\tEine Katze.\\n")
      >>> record = evaluate(encoder, "dev", baseline="tfidf")
      >>> record["average"]["model"]
      {'to_english': 1.0, 'from_english': 1.0}
    """
    pools = read_pools(data, max_candidates)
    texts = (text for pool in pools.values() for pair in pool for text in pair)
    vectors = TextVectors(encoder, texts)
    systems: dict[str, Similarities] = {
        "model": lambda sources, targets: vectors[sources] @ vectors[targets].T
    }
    if baseline:
        systems[baseline] = BASELINES[baseline]
    return make_record(
        "retrieval",
        encoder,
        data,
        [file.path for file in find_corpus_files([os.fspath(data)], kind=BITEXT)],
        primary_metric=PRIMARY_METRIC,
        directions=("xx -> en", "en -> xx"),
        settings={"baseline": baseline, "max_candidates": max_candidates, "ties": "not found"},
        scores={"max_candidates": max_candidates, **evaluate_systems(systems, pools)},
    )


def evaluate_systems(
    systems: Mapping[str, Similarities], pools: Mapping[str, Sequence[tuple[str, str]]]
) -> dict[str, Any]:
    """Evaluates every system on the same pools.

    Args:
      systems: similarity functions by name.
      pools: per language, pairs of English and foreign text, from `read_pools`.

    Returns:
      `languages`: for each its `pairs` and, by system, the accuracies `to_english` and
      `from_english`; `average`: by system, the means of these over languages.
    """
    languages: dict[str, dict[str, Any]] = {}
    with Progress("evaluate", total=len(pools), unit="language") as progress:
        for language, rows in pools.items():
            english, foreign = zip(*rows, strict=True)
            languages[language] = {"pairs": len(rows)} | {
                name: accuracies(similarities(foreign, english))
                for name, similarities in systems.items()
            }
            progress.update()
    average = {
        name: {
            direction: float(np.mean([scores[name][direction] for scores in languages.values()]))
            for direction in ("to_english", "from_english")
        }
        for name in systems
    }
    return {"average": average, "languages": languages}


def read_pools(
    data: str | os.PathLike[str], max_candidates: int = MAX_CANDIDATES
) -> dict[str, list[tuple[str, str]]]:
    """Reads each language's first pairs; several files of a language are concatenated.

    Args:
      data: a folder of bitext files.
      max_candidates: a language's pool has at most this many pairs.

    Returns:
      Per language, pairs of English and foreign text.

    Raises:
      InputError: if the data are missing or broken.
    """
    if max_candidates < 1:
        raise InputError(f"--max-candidates is {max_candidates}", remedy="give 1 or more")
    pools: dict[str, list[tuple[str, str]]] = {}
    for file in find_corpus_files([os.fspath(data)], kind=BITEXT):
        if file.format != "tsv":
            raise InputError(
                "evaluation reads TSV files", path=file.path, remedy="name a folder of <lang>.tsv"
            )
        pool = pools.setdefault(file.language, [])
        for _, english, foreign in read_pairs(file.path, swapped=file.swapped):
            if len(pool) < max_candidates:
                pool.append((english, foreign))
    return pools


BASELINES: dict[str, Similarities] = {"tfidf": tfidf_similarities}


def figure(result: dict[str, Any]) -> float:
    """Returns the model's mean accuracy of both directions."""
    return float(np.mean(list(result["average"]["model"].values())))


def units(result: dict[str, Any]) -> dict[str, float]:
    """Returns the accuracy in each language."""
    return {
        code: float(np.mean(list(row["model"].values())))
        for code, row in result["languages"].items()
    }


def format_table(result: dict[str, Any]) -> str:
    """Returns a line per language, then the average."""
    systems = list(result["average"])
    header = f"{'':8}{'pairs':>6}" + "".join(
        f"{name + ' xx-en':>15}{'en-xx':>8}" for name in systems
    )
    lines = [header]
    rows = [*result["languages"].items(), ("average", {"pairs": "", **result["average"]})]
    for name, scores in rows:
        cells = "".join(
            f"{100 * scores[system]['to_english']:15.1f}{100 * scores[system]['from_english']:8.1f}"
            for system in systems
        )
        lines.append(f"{name:8}{scores['pairs']:>6}{cells}")
    return "\n".join(lines)
