"""The task `language-bias`: do vectors cluster by meaning or by language?

The pool is the same sentences in several languages: files `<code>.txt` in which lines i are
translations of each other. With an unbiased encoder, nearest neighbours are translations; with a
biased one, they are other sentences of the same language. The task counts both, before and after
removing the first r principal components of each language's vectors (Yang et al. 2021, arXiv
2012.14388, section 5.1), and with `tatoeba` measures the effect on Tatoeba's accuracy.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.mixed_pool import neighbour_shares
from labse_tf.evaluation.pool import find_files, read_pool
from labse_tf.evaluation.principal_components import Bias, find_bias
from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.task import Option
from labse_tf.evaluation.tasks import tatoeba as tatoeba_task
from labse_tf.evaluation.texts import read_aligned, read_texts
from labse_tf.files.hashing import sha256_of_files
from labse_tf.languages import find_code
from labse_tf.progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY_METRIC = "same_language"
FOLDERS = ("flores", "flores200", "ntrex128")
UNITS_ARE_LANGUAGES = True
LOWER_IS_BETTER = True
DATA = "<code>.txt, the same sentences in each: are neighbours of the same language?"


def numbers(text: str) -> list[int]:
    """Parses comma-separated numbers; argparse shows this function's name in its errors."""
    return [int(number) for number in text.split(",")]


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


OPTIONS = (
    Option(
        "fit",
        "other text, <code>.txt, to find the principal components of (default: the pool)",
        metavar="DIR",
    ),
    Option("tatoeba", "also measure what their removal does to Tatoeba", metavar="DIR"),
    Option(
        "components",
        "how many are taken out (default 0,1,2,4,8)",
        type=numbers,
        metavar="N,...",
    ),
    Option(
        "center",
        "whether each language's mean is subtracted before its components are found and removed: "
        "no (default, as in the authors' code), yes",
        choices=("no", "yes"),
    ),
    Option(
        "sentences",
        "of each language, from the first (default 200)",
        type=int,
        metavar="N",
    ),
    Option("languages", "such as deu,eng,tha (default: all)", type=_names, metavar="CODES"),
)

COMPONENTS = (0, 1, 2, 4, 8)
SENTENCES = 200
FITTED_ON_POOL = "the pool itself"

_ENGLISH = "eng"


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    fit: str | os.PathLike[str] | None = None,
    tatoeba: str | os.PathLike[str] | None = None,
    components: Sequence[int] | None = None,
    center: str = "no",
    sentences: int = SENTENCES,
    languages: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Evaluates an encoder.

    Args:
      encoder: any.
      data: a folder of `<code>.txt`, compressed or not, all with the same number of lines.
      fit: a folder of other text, `<code>.txt`, to compute the components from; by default they are
        computed from the pool itself, which gives better results than unseen text would.
      tatoeba: LASER's folder, as for the task `tatoeba`.
      components: the numbers of components to remove, each 0 or more and fewer than the sentences
        they are computed from; by default all of COMPONENTS for which this holds.
      center: "yes": the mean of a language's vectors (those that its components are computed from)
        is subtracted before the components are computed, and before they are removed. The paper
        does not say; the authors' later code (github.com/ziyi-yang/LIR) does not. Without
        components nothing is subtracted either.
      sentences: the pool has this many sentences per language, from the first.
      languages: codes of the languages to use; by default all in the folder.

    Returns:
      The record. `removed`: for each number of components `same_language`, the share of sentences
      whose nearest neighbour in the pool (other than themselves) is in their own language;
      `translation`, the share for which it is a translation; `mean_average_precision` of finding
      all translations, and `nearer`, as described in `mixed_pool`; `shares`, each language's share
      of all nearest neighbours; `from`, for each language the shares of the languages of its
      neighbours; and `tatoeba`, the accuracy (mean of both directions) for each language and the
      average.
      `same_language`: the value with no components removed.

    Raises:
      InputError: if the data are missing or broken.

    Example: with an encoder that counts letters, 2 of 6 neighbours are of the same language, 3 are
    translations.

      >>> Path("pool").mkdir()
      >>> _ = Path("pool/deu.txt").write_text("Hallo Welt.\\nDie Katze.\\nDie Hunde.\\n")
      >>> _ = Path("pool/eng.txt").write_text("Hello world.\\nThe cat.\\nThe dogs.\\n")
      >>> record = evaluate(encoder, "pool", components=[0])
      >>> round(record["same_language"], 3), round(record["removed"]["0"]["translation"], 3)
      (0.333, 0.5)
    """
    files = find_files(data, languages)
    pool = read_pool(files, sentences)
    fit_files = find_files(fit, list(pool)) if fit is not None else {}
    fit_texts = {code: read_texts(path) for code, path in fit_files.items()}
    components = check_components(components, min(map(len, (fit_texts or pool).values())))
    pairs_files = _tatoeba_files(tatoeba, pool)
    pairs = {code: read_aligned(*paths) for code, (_, paths) in pairs_files.items()}
    vectors = TextVectors(
        encoder,
        itertools.chain(*pool.values(), *fit_texts.values(), *itertools.chain(*pairs.values())),
    )
    biases = _find_biases(vectors, fit_texts or pool, max(components), center == "yes")
    removed = {}
    with Progress("search", total=len(components), unit="number of components") as progress:
        for count in progress.each(components):
            first = {code: bias.first(count) for code, bias in biases.items()}
            removed[str(count)] = neighbour_shares(
                {code: first[code].remove_from(vectors[pool[code]]) for code in pool}
            )
            if pairs:
                own = {code: first[pool_code] for code, (pool_code, _) in pairs_files.items()}
                removed[str(count)]["tatoeba"] = _tatoeba_scores(
                    vectors, pairs, own, first.get(_english(pool))
                )
    return make_record(
        "language-bias",
        encoder,
        data,
        files.values(),
        primary_metric=PRIMARY_METRIC,
        directions=("each sentence -> all others of the pool",),
        settings={
            "components": list(components),
            "components_of": _describe_fit(fit, fit_files),
            "center": center,
            "sentences": len(next(iter(pool.values()))),
            "languages": list(pool),
            "tatoeba": None if tatoeba is None else os.fspath(tatoeba),
        },
        scores={"same_language": removed[str(components[0])]["same_language"], "removed": removed},
    )


def _find_biases(
    vectors: TextVectors, texts: Mapping[str, list[str]], count: int, center: bool
) -> dict[str, Bias]:
    with Progress("principal components", total=len(texts), unit="language") as progress:
        return {
            code: find_bias(vectors[lines], count, center=center)
            for code, lines in progress.each(texts.items())
        }


def _describe_fit(fit, files: dict[str, str]) -> str | dict[str, Any]:
    if fit is None:
        return FITTED_ON_POOL
    return {
        "path": os.fspath(fit),
        "files": len(files),
        "sha256": sha256_of_files(files.values(), root=fit),
    }


def check_components(components: Sequence[int] | None, sentences: int) -> tuple[int, ...]:
    """Returns the numbers of components, sorted, including 0.

    Args:
      components: None for those of COMPONENTS that can be computed.
      sentences: number of sentences that they are computed from, in the smallest language.

    Raises:
      InputError: if one is negative, or nothing would be left of the vectors.
    """
    if components is None:
        components = [count for count in COMPONENTS if count < sentences]
    counts = tuple(sorted({0, *components}))
    if counts[0] < 0:
        raise InputError("--components has a negative number", remedy="give 0 or more")
    if counts[-1] >= sentences:
        raise InputError(
            f"--components {counts[-1]} needs more than {counts[-1]} sentences, not {sentences}",
            remedy="give fewer components, or more sentences",
        )
    return counts


def _tatoeba_files(
    data: str | os.PathLike[str] | None, pool: Iterable[str]
) -> dict[str, tuple[str, tuple[str, str]]]:
    """Returns for each language of Tatoeba that is in the pool its code there, and the paths."""
    if data is None:
        return {}
    # Of several codes for one language, such as fra and fra-CA, the first is used.
    by_language = {_language(code): code for code in reversed(list(pool))}
    found = {
        code: (by_language[_language(code)], paths)
        for code, paths in tatoeba_task.find_files(data).items()
        if _language(code) in by_language
    }
    if not found:
        raise InputError(
            "has no language of the pool", path=data, remedy="leave --tatoeba out, or add languages"
        )
    return found


def _language(code: str) -> str:
    return find_code(code) or code


def _english(pool: Iterable[str]) -> str | None:
    return next((code for code in pool if _language(code) == _language(_ENGLISH)), None)


def _tatoeba_scores(
    vectors: TextVectors,
    pairs: Mapping[str, tuple[list[str], list[str]]],
    biases: Mapping[str, Bias],
    english_bias: Bias | None,
) -> dict[str, Any]:
    accuracies = {}
    for code, (foreign, english) in pairs.items():
        english_vectors = vectors[english]
        if english_bias is not None:
            english_vectors = english_bias.remove_from(english_vectors)
        scores = tatoeba_task.score_language(
            biases[code].remove_from(vectors[foreign]), english_vectors
        )
        accuracies[code] = scores["mean_accuracy"]
    return {"accuracy": float(np.mean(list(accuracies.values()))), "languages": accuracies}


def units(result: dict[str, Any]) -> dict[str, float]:
    """Returns the share of each language's neighbours in itself."""
    return {code: row[code] for code, row in next(iter(result["removed"].values()))["from"].items()}


def format_table(result: dict[str, Any]) -> str:
    """Returns a line per number of components, with the most frequent languages."""
    of = result["settings"]["components_of"]
    of = of if isinstance(of, str) else of["path"]
    count = len(result["settings"]["languages"])
    lines = [
        f"{count} languages, {result['settings']['sentences']} sentences each; components of {of}",
        f"{'taken out':>9}{'same language':>15}{'translation':>13}{'mAP':>7}{'nearer':>8}"
        f"{'Tatoeba':>9}   most often",
    ]
    for removed, scores in result["removed"].items():
        most = sorted(scores["shares"].items(), key=lambda item: -item[1])[:4]
        most = ", ".join(f"{code} {100 * share:.1f}" for code, share in most)
        tatoeba = f"{100 * scores['tatoeba']['accuracy']:.1f}" if "tatoeba" in scores else "-"
        lines.append(
            f"{removed:>9}{100 * scores['same_language']:15.1f}"
            f"{100 * scores['translation']:13.1f}{100 * scores['mean_average_precision']:7.1f}"
            f"{100 * scores['nearer']:8.1f}{tatoeba:>9}   {most}"
        )
    lines.append(f"all in per cent; a language's fair share of neighbours is {100 / count:.1f}")
    return "\n".join(lines)


def draw(result: dict[str, Any], figure: Figure) -> None:
    """Plots the shares by number of components, and each language's share of the neighbours."""
    right_inches = max(4.0, 0.1 * len(result["settings"]["languages"]))
    figure.set_size_inches(4 + right_inches, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(4, right_inches))
    removed = result["removed"]
    places = range(len(removed))
    lines = {
        name: [100 * scores[name] for scores in removed.values()]
        for name in ("same_language", "translation")
    }
    if all("tatoeba" in scores for scores in removed.values()):
        lines["Tatoeba accuracy"] = [
            100 * scores["tatoeba"]["accuracy"] for scores in removed.values()
        ]
    for name, heights in lines.items():
        left.plot(places, heights, "o-", markersize=4, label=name.replace("_", " "))
    left.set_xticks(places, list(removed))
    left.set_xlabel("principal components taken out")
    left.set_ylabel("%")
    left.set_ylim(0, 101)
    left.legend(fontsize=7)
    ends = (next(iter(removed)), list(removed)[-1])
    order = sorted(removed[ends[0]]["shares"].items(), key=lambda item: -item[1])
    for place, count in enumerate(dict.fromkeys(ends)):
        shares = [100 * removed[count]["shares"][code] for code, _ in order]
        right.plot(shares, "ox"[place], markersize=3, label=f"{count} taken out")
    right.axhline(100 / len(order), color="#888888", linewidth=0.8, label="fair share")
    right.set_xticks(range(len(order)), [code for code, _ in order], rotation=90, fontsize=5)
    right.set_ylabel("of all nearest neighbours, %")
    right.set_ylim(bottom=0)
    right.legend(fontsize=7)
