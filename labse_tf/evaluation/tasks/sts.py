"""The task `sts`: semantic textual similarity, such as STS12 to STS16 and the STS benchmark.

Similarities are compared with human scores by Pearson's and Spearman's correlation, for two
similarities: the cosine, and the angular one, 1 - arccos(cosine) / pi (Cer et al. 2018, arXiv
1803.11175, equation 1). Spearman's is the same for both.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.errors import InputError
from labse_tf.evaluation.result import Column, Part, Result, mean_of
from labse_tf.evaluation.task import Option, make_record
from labse_tf.evaluation.texts import ScoredPairs, find_files, read_columns, read_scores

TYPE = "STS"
PRIMARY_METRIC = "spearman"
FOLDERS = ("sts",)
DATA = "<set>/<name>.tsv of score, sentence 1, sentence 2: Pearson and Spearman"

METRICS = ("pearson_cosine", "pearson_angular", "spearman")

_SPLITS = ("train", "dev", "test")
OPTIONS = (Option("split", "of files whose names tell a split (default test)", choices=_SPLITS),)
# The set's folders, the name, and its split if it tells one.
_FILE = re.compile(r"(?:(.+)/)?([^/]+?)(?:\.(train|dev|test))?\.(?:tsv|txt)")


def evaluate(
    encoder: Encoder, data: str | os.PathLike[str], *, split: str = "test"
) -> dict[str, Any]:
    """Returns the record of an encoder.

    `sets`: for each set its `files`, with `pairs` and METRICS for each; `all`, the metrics over all
    pairs of the set, and `mean`, the mean over its files. `spearman`: the mean of the sets' `all`.
    A correlation is NaN if all similarities are equal.
    """
    files: dict[str, dict[str, str]] = {}
    found = find_files(data, _FILE, "<set>/<name>.tsv of score<TAB>sentence 1<TAB>sentence 2")
    for (set_, name, own_split), path in found.items():
        if own_split in (None, split):
            files.setdefault(set_ or Path(data).resolve().name, {})[name] = path
    if not files:
        raise InputError(f"holds no files for the split {split}", path=data, remedy="add them")
    sets = {
        name: {file: read_scored_pairs(path) for file, path in paths.items()}
        for name, paths in files.items()
    }
    pairs = (one for set_ in sets.values() for one in set_.values())
    vectors = TextVectors(encoder, (text for one in pairs for text in one.first + one.second))
    scores = {name: _score_set(set_, vectors) for name, set_ in sets.items()}
    paths = [path for set_ in files.values() for path in set_.values()]
    means = mean_of(set_["all"] for set_ in scores.values())
    figures = {"spearman": means["spearman"], **means, "sets": scores}
    return make_record("sts", encoder, data, paths, {"split": split}, figures)


def read_scored_pairs(path: str | os.PathLike[str]) -> ScoredPairs:
    """Reads score, sentence 1, sentence 2; further columns are ignored.

    Raises:
      InputError: as `read_columns`, or if a score is not a number, or there is only one line.
    """
    columns = read_columns(path, ("score", "sentence 1", "sentence 2"))
    texts, first, second = zip(*columns, strict=True)
    scores = read_scores(texts, path)
    if len(scores) < 2:
        problem = "has only one pair, too few for a correlation"
        raise InputError(problem, path=path, remedy="add others")
    return ScoredPairs(scores, list(first), list(second))


def _score_set(files: dict[str, ScoredPairs], vectors: TextVectors) -> dict[str, Any]:
    """Returns the metrics for each file of a set, over all its pairs, and the mean over files."""
    cosines = {name: pairs.cosines(vectors) for name, pairs in files.items()}
    scores = {
        name: {"pairs": len(pairs.scores), **correlations(cosines[name], pairs.scores)}
        for name, pairs in files.items()
    }
    together = np.concatenate([pairs.scores for pairs in files.values()])
    return {
        "pairs": len(together),
        "all": correlations(np.concatenate(list(cosines.values())), together),
        "mean": mean_of(scores.values(), METRICS),
        "files": scores,
    }


def correlations(cosines: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Returns METRICS of `[n]` cosines against `[n]` scores; NaN if either are all equal."""
    from scipy.stats import pearsonr, spearmanr

    cosines = np.clip(cosines.astype(np.float64), -1, 1)
    if np.ptp(cosines) == 0 or np.ptp(scores) == 0:
        return dict.fromkeys(METRICS, math.nan)
    return {
        "pearson_cosine": float(pearsonr(cosines, scores).statistic),
        "pearson_angular": float(pearsonr(angular_similarity(cosines), scores).statistic),
        "spearman": float(spearmanr(cosines, scores).statistic),
    }


def angular_similarity(cosines: np.ndarray) -> np.ndarray:
    """Returns 1 - arccos(cosine) / pi, from 0 (opposite) to 1 (same direction)."""
    return 1 - np.arccos(np.clip(cosines, -1, 1)) / np.pi


def describe(record: Mapping[str, Any]) -> Result:
    """Returns a part for each set: its files, all together, and the mean of files."""
    columns = (
        Column("pairs", "pairs", None),
        Column("Pearson cos", "pearson_cosine", 2),
        Column("angular", "pearson_angular", 2),
        Column("Spearman", "spearman", 2, style="bar"),
    )
    parts = []
    for name, row in record["sets"].items():
        together = {"pairs": row["pairs"]} | row["all"]
        means = {"all together": together, "mean": row["mean"]}
        parts.append(Part(name, row["files"], columns, means))
    units = {name: row["all"]["spearman"] for name, row in record["sets"].items()}
    return Result([*parts, Part("all sets", {}, columns, {"mean of all together": record})], units)
