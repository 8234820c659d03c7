"""The task `bucc`: finding the translations in two monolingual corpora.

BUCC 2018 (Zweigenbaum, Sharoff and Rapp 2018) provides two files of `id<TAB>sentence` and the gold
pairs of ids; a system extracts pairs, and is scored by their precision, recall and F1. As in
LaBSE's paper and LASER, pairs are ranked by a score and cut off where F1 is best: an upper bound,
as the threshold is chosen on the same gold pairs. The scores are the cosine, which LaBSE's paper
uses, and the margin scores of Artetxe and Schwenk 2019 (arXiv 1811.01136).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.bitext import nearest_indices, weighted_scores
from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.task import Option
from labse_tf.evaluation.texts import check_text
from labse_tf.files.corpus_files import split_compression
from labse_tf.files.textio import read_lines, strip
from labse_tf.progress import Progress
from labse_tf.retrieval.margin import MARGINS
from labse_tf.retrieval.mining import RETRIEVALS, mine_pairs
from labse_tf.retrieval.neighbours import nearest_both
from labse_tf.retrieval.threshold import best_threshold

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY_METRIC = "f1"
FOLDERS = ("bucc", "bucc2018")
DATA = """\
<a>-<b>.<split>.<a>, .<b> and .gold: F1 of mined pairs at the best threshold,
by cosine as LaBSE's paper, and by margin"""
OPTIONS = (
    Option(
        "neighbours",
        "that the means of the margin scores are taken over (default 4)",
        type=int,
        metavar="K",
    ),
)

# LASER's default for the margin scores.
NEIGHBOURS = 4
# The setting of `f1`: the best one in Artetxe and Schwenk 2019, table 1.
PRIMARY_MARGIN, PRIMARY_RETRIEVAL = "ratio", "max"
# The settings of `f1_cosine`: the score of LaBSE's paper, searched from each side.
COSINE, COSINE_RETRIEVALS = "absolute", ("forward", "backward")

# <a>-<b>.<split>.<side>, where side is a language or `gold`.
_NAME = re.compile(r"([a-z]+)-([a-z]+)\.([a-z]+)\.([a-z]+)")
_GOLD = "gold"


class Corpora(NamedTuple):
    """Two monolingual corpora and their gold pairs.

    Attributes:
      sources: sentences.
      targets: sentences.
      gold: int64 `[pairs, 2]`, indices of source and target.
    """

    sources: list[str]
    targets: list[str]
    gold: np.ndarray


def evaluate(
    encoder: Encoder, data: str | os.PathLike[str], *, neighbours: int = NEIGHBOURS
) -> dict[str, Any]:
    """Evaluates an encoder.

    Args:
      encoder: any.
      data: a folder with `<a>-<b>.<split>.<a>`, `.<b>` and `.gold`, compressed or not; all corpora
        with gold pairs are scored.
      neighbours: number of neighbours that the means of the margin scores are taken over.

    Returns:
      The record. `corpora`: for each name `<a>-<b>.<split>` the sizes; `mining`: for each margin
      and retrieval the best `threshold` and its `precision`, `recall` and `f1`; `mteb`: precision,
      recall and F1 of the nearest target of each gold source, among `all` targets (MTEB's BUCC) and
      among the `gold` ones (its BUCC.v2). `f1`: the mean over corpora for ratio and max;
      `f1_cosine`: for each retrieval, the mean for the cosine.

    Raises:
      InputError: if the data are missing or broken.

    Example: with an encoder that counts letters.

      >>> Path("bucc").mkdir()
      >>> _ = Path("bucc/de-en.training.de").write_text("de-1\\tHallo Welt.\\nde-2\\tNie!\\n")
      >>> _ = Path("bucc/de-en.training.en").write_text("en-1\\tCats.\\nen-2\\tHello world.\\n")
      >>> _ = Path("bucc/de-en.training.gold").write_text("de-1\\ten-2\\n")
      >>> record = evaluate(encoder, "bucc", neighbours=2)
      >>> record["corpora"]["de-en.training"]["mteb"]["all"]["f1"], round(record["f1"], 3)
      (1.0, 0.667)
    """
    if neighbours < 1:
        raise InputError(f"--neighbours is {neighbours}", remedy="give 1 or more")
    files = find_files(data)
    corpora = {name: read_corpora(*paths) for name, paths in files.items()}
    sides = (side for one in corpora.values() for side in (one.sources, one.targets))
    vectors = TextVectors(encoder, itertools.chain.from_iterable(sides))
    results = {
        name: score_corpora(
            vectors[one.sources], vectors[one.targets], one.gold, neighbours=neighbours
        )
        for name, one in corpora.items()
    }
    return make_record(
        "bucc",
        encoder,
        data,
        [path for paths in files.values() for path in paths],
        primary_metric=PRIMARY_METRIC,
        directions=("a -> b (forward)", "b -> a (backward)"),
        settings={
            "neighbours": neighbours,
            "margin": PRIMARY_MARGIN,
            "retrieval": PRIMARY_RETRIEVAL,
        },
        scores={
            "f1": _mean_f1(results, PRIMARY_MARGIN, PRIMARY_RETRIEVAL),
            "f1_cosine": {name: _mean_f1(results, COSINE, name) for name in COSINE_RETRIEVALS},
            "corpora": results,
        },
    )


def _mean_f1(results: dict[str, Any], margin: str, retrieval: str) -> float:
    return float(np.mean([one["mining"][margin][retrieval]["f1"] for one in results.values()]))


def find_files(data: str | os.PathLike[str]) -> dict[str, tuple[str, str, str]]:
    """Returns for each name the paths of sources, targets and gold pairs.

    Raises:
      InputError: if there are no gold pairs, or a side of the corpus is missing.
    """
    if not os.path.isdir(data):
        raise InputError("is not a folder", path=data, remedy="name the folder of BUCC's files")
    paths: dict[str, str] = {}
    for path in sorted(Path(data).iterdir()):
        paths[split_compression(path.name)[0]] = str(path)
    matches = [match for name in paths if (match := _NAME.fullmatch(name)) and match[4] == _GOLD]
    if not matches:
        raise InputError(
            "holds no gold pairs",
            path=data,
            remedy="expected <a>-<b>.<split>.<a>, .<b> and .gold, such as zh-en.dev.gold",
        )
    found = {}
    for match in matches:
        name = f"{match[1]}-{match[2]}.{match[3]}"
        for side in (match[1], match[2]):
            if f"{name}.{side}" not in paths:
                raise InputError(
                    f"holds no {name}.{side}", path=data, remedy=f"put it beside {name}.gold"
                )
        found[name] = tuple(paths[f"{name}.{side}"] for side in (match[1], match[2], _GOLD))
    return found


def read_corpora(source_path: str, target_path: str, gold_path: str) -> Corpora:
    """Reads both corpora and the gold pairs.

    Raises:
      InputError: as `read_lines`, or if a line does not have two columns, an id or a gold pair is
        repeated, or a gold pair refers to an unknown id.
    """
    sources, targets = read_sentences(source_path), read_sentences(target_path)
    places = [dict(zip(side, itertools.count())) for side in (sources, targets)]
    gold: dict[tuple[int, int], int] = {}
    for number, ids in _read_columns(gold_path):
        pair = []
        for id_, known, path in zip(ids, places, (source_path, target_path), strict=True):
            if id_ not in known:
                raise InputError(
                    f"{os.path.basename(path)} has no sentence '{id_}'",
                    path=gold_path,
                    line=number,
                    remedy="take gold pairs and sentences of the same release",
                )
            pair.append(known[id_])
        first = gold.setdefault(tuple(pair), number)
        if first != number:
            raise InputError(
                f"the pair is in line {first} already",
                path=gold_path,
                line=number,
                remedy="remove one of them",
            )
    return Corpora(list(sources.values()), list(targets.values()), np.array(list(gold), np.int64))


def read_sentences(path: str | os.PathLike[str]) -> dict[str, str]:
    """Returns the sentences of a corpus by id, in order.

    Raises:
      InputError: as `read_corpora`.
    """
    sentences: dict[str, str] = {}
    for number, (id_, text) in _read_columns(path):
        if id_ in sentences:
            raise InputError(
                f"the id '{id_}' is repeated", path=path, line=number, remedy="make the ids unique"
            )
        sentences[id_] = check_text(text, path, number)
    return sentences


def _read_columns(path: str | os.PathLike[str]):
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) != 2:
            raise InputError(
                f"{len(columns)} columns where two are expected",
                path=path,
                line=number,
                remedy="give id<TAB>sentence, in the file of gold pairs id<TAB>id",
            )
        yield number, (strip(columns[0]), strip(columns[1]))


def score_corpora(
    sources: np.ndarray, targets: np.ndarray, gold: np.ndarray, *, neighbours: int = NEIGHBOURS
) -> dict[str, Any]:
    """Returns the scores of a pair of corpora.

    Args:
      sources: float32 `[n, dim]`, unit rows.
      targets: float32 `[m, dim]`, unit rows.
      gold: int64 `[pairs, 2]`, indices of source and target; no repeated pairs.
      neighbours: number of neighbours that the means of the margin scores are taken over.
    """
    with Progress("search", total=len(sources), unit="sentence") as progress:
        forward, backward = nearest_both(sources, targets, neighbours, on_progress=progress.update)
    keys = gold[:, 0] * len(targets) + gold[:, 1]
    mining: dict[str, dict[str, Any]] = {margin: {} for margin in MARGINS}
    for margin, retrieval in itertools.product(MARGINS, RETRIEVALS):
        pairs = mine_pairs(forward, backward, margin=margin, retrieval=retrieval)
        is_gold = np.isin(pairs.sources * len(targets) + pairs.targets, keys)
        best = best_threshold(pairs.scores, is_gold, len(gold))
        mining[margin][retrieval] = {"pairs": len(pairs), **dataclasses.asdict(best)}
    return {
        "sources": len(sources),
        "targets": len(targets),
        "gold": len(gold),
        "mining": mining,
        "mteb": _mteb_scores(sources, targets, gold, forward.indices[:, 0]),
    }


def _mteb_scores(
    sources: np.ndarray, targets: np.ndarray, gold: np.ndarray, nearest: np.ndarray
) -> dict[str, dict[str, float]]:
    among_gold = nearest_indices(sources[gold[:, 0]], targets[gold[:, 1]])
    return {
        "all": weighted_scores(nearest[gold[:, 0]], gold[:, 1]),
        "gold": weighted_scores(among_gold, np.arange(len(gold))),
    }


def format_table(result: dict[str, Any]) -> str:
    """Returns per pair of corpora a line per margin and retrieval, and MTEB's; then the means."""
    lines = []
    for name, one in result["corpora"].items():
        sizes = f"{one['sources']:,} and {one['targets']:,} sentences, {one['gold']:,} gold pairs"
        lines += [
            f"{name}: {sizes}",
            f"  {'margin':10}{'retrieval':14}{'threshold':>10}{'P':>8}{'R':>8}{'F1':>8}",
        ]
        for margin, retrievals in one["mining"].items():
            for retrieval, best in retrievals.items():
                lines.append(
                    f"  {margin:10}{retrieval:14}{best['threshold']:10.4f}{_percents(best)}"
                )
        for pool, scores in one["mteb"].items():
            lines.append(f"  {'MTEB, among ' + pool + ' targets':34}{_percents(scores)}")
    cosine = [f"{name} {100 * f1:.2f}" for name, f1 in result["f1_cosine"].items()]
    lines += [
        f"mean F1 by cosine, as LaBSE's paper: {', '.join(cosine)}",
        f"mean F1 by {PRIMARY_MARGIN}, as Artetxe and Schwenk: "
        f"{PRIMARY_RETRIEVAL} {100 * result[PRIMARY_METRIC]:.2f}",
    ]
    return "\n".join(lines)


def _percents(scores: dict[str, float]) -> str:
    return "".join(f"{100 * scores[name]:8.2f}" for name in ("precision", "recall", "f1"))


def draw(result: dict[str, Any], figure: Figure) -> None:
    """Plots the best F1 by margin and retrieval, one panel per pair of corpora."""
    corpora = result["corpora"]
    figure.set_size_inches(3.6 * len(corpora) + 1, 3.2)
    panels = figure.subplots(1, len(corpora), sharey=True, squeeze=False)[0]
    width = 1 / (len(RETRIEVALS) + 1)
    for axes, (name, one) in zip(panels, corpora.items(), strict=True):
        for place, retrieval in enumerate(RETRIEVALS):
            heights = [100 * one["mining"][margin][retrieval]["f1"] for margin in MARGINS]
            axes.bar(np.arange(len(MARGINS)) + place * width, heights, width, label=retrieval)
        axes.set_xticks(np.arange(len(MARGINS)) + 1.5 * width, MARGINS)
        axes.set_title(name, fontsize=9)
        axes.set_ylim(0, 100)
    panels[0].set_ylabel("F1 at the best threshold, %")
    panels[0].legend(fontsize=7)
