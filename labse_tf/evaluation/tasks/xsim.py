"""The task `xsim`: errors of finding translations by margin, and against perturbed English.

xSIM (Heffernan et al. 2022, arXiv 2205.12654) searches each sentence of one language among the same
sentences of another: of the k nearest, that with the highest margin score (Artetxe and Schwenk
2019, arXiv 1811.01136) should be its translation. xSIM++ (Chen et al. 2023, arXiv 2306.12907) adds
English sentences to what is searched that differ in a number, a name or a negation;
`labse corpus perturb` makes them. Both count errors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labse_tf.embedding.distinct import TextVectors
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.evaluation.pool import find_files, read_pool
from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.task import Option
from labse_tf.evaluation.texts import check_text
from labse_tf.files.textio import read_lines
from labse_tf.progress import Progress
from labse_tf.retrieval.margin import MARGINS, margin_scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIMARY_METRIC = "error"
FOLDERS = ("flores", "flores200", "ntrex128")
LOWER_IS_BETTER = True
DATA = "<code>.txt or FLORES' <code>.devtest, the same sentences in each: errors of the search"
OPTIONS = (
    Option("margin", "of the scores (default ratio)", choices=MARGINS),
    Option("k", "neighbours of a sentence (default 4)", type=int, metavar="K"),
    Option(
        "pairs",
        "to and from English, or of all languages (default english)",
        choices=("english", "all"),
    ),
    Option("english", "code of English (default eng, eng_Latn or en)", metavar="CODE"),
    Option("perturbed", "from `labse corpus perturb` on the English file: xSIM++", metavar="FILE"),
)

K = 4
_ENGLISH = ("eng", "eng_Latn", "en")


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    margin: str = "ratio",
    k: int = K,
    pairs: str = "english",
    english: str | None = None,
    perturbed: str | None = None,
) -> dict[str, Any]:
    """Evaluates an encoder.

    Args:
      encoder: any.
      data: a folder of files with the same sentences.
      margin: one of MARGINS.
      k: how many neighbours are candidates, and are averaged for the margin.
      pairs: "english" or "all".
      english: the code of English in `data`.
      perturbed: a file of line number, kind and text, for xSIM++; numbers begin with 1.

    Returns:
      The record. `errors`: by searching and searched language, the share of sentences whose
      translation was not found; `to_english`, `from_english`: means over the other languages;
      `error`: the mean of all `errors`. With `perturbed`, `plus`: by language, the `error` of
      searching English with its perturbed sentences, and by kind the share of sentences for which
      one of that kind was found instead; `plus_error`: the mean over languages.

    Raises:
      InputError: if the data are missing or broken.

    Example: with an encoder that counts letters.

      >>> Path("xsim").mkdir()
      >>> _ = Path("xsim/deu.txt").write_text("Hallo Welt.\\nDie Katze.\\nDie Hunde.\\n")
      >>> _ = Path("xsim/eng.txt").write_text("Hello world.\\nThe cat.\\nThe dogs.\\n")
      >>> evaluate(encoder, "xsim", k=2)["errors"]["deu"]["eng"] < 0.5
      True
    """
    if k < 1:
        raise InputError(f"--k is {k}", remedy="give 1 or more")
    files = find_files(data)
    english = _english(files, english, data)
    texts = read_pool(files)
    changed = _read_perturbed(perturbed, len(texts[english])) if perturbed else []
    everything = (
        text for lines in (*texts.values(), [row[2] for row in changed]) for text in lines
    )
    vectors = TextVectors(encoder, everything)
    by_code = {code: vectors[lines] for code, lines in texts.items()}
    wanted = [
        (one, other)
        for one in texts
        for other in texts
        if one != other and (pairs == "all" or english in (one, other))
    ]
    errors: dict[str, dict[str, float]] = {}
    gold = np.arange(len(texts[english]))
    with Progress("search", total=len(wanted), unit="pair") as progress:
        for one, other in progress.each(wanted):
            found = find(by_code[one], by_code[other], k=k, margin=margin)
            errors.setdefault(one, {})[other] = float(np.mean(found != gold))
    scores = {
        "error": float(np.mean([error for row in errors.values() for error in row.values()])),
        "to_english": float(np.mean([row[english] for row in errors.values() if english in row])),
        "from_english": float(np.mean(list(errors[english].values()))),
        "errors": errors,
    }
    if changed:
        pool = np.concatenate([by_code[english], vectors[[row[2] for row in changed]]])
        others = {code: one for code, one in by_code.items() if code != english}
        scores["plus"] = {
            code: _plus(find(one, pool, k=k, margin=margin), changed)
            for code, one in others.items()
        }
        scores["plus_error"] = float(np.mean([row["error"] for row in scores["plus"].values()]))
    return make_record(
        "xsim",
        encoder,
        data,
        [*files.values(), *([perturbed] if perturbed else [])],
        primary_metric=PRIMARY_METRIC,
        directions=("all",) if pairs == "all" else ("xx -> en", "en -> xx"),
        settings={
            "margin": margin,
            "k": k,
            "pairs": pairs,
            "english": english,
            "perturbed": perturbed,
        },
        scores=scores,
    )


def find(sources: np.ndarray, targets: np.ndarray, *, k: int, margin: str) -> np.ndarray:
    """Returns for each source the target with the highest margin score among its k nearest.

    Args:
      sources: float32 `[n, dim]`, unit rows.
      targets: float32 `[m, dim]`, unit rows; all similarities are held in memory.
      k: at most n and m are used.
      margin: one of MARGINS.

    Returns:
      int64 `[n]`.
    """
    similarities = sources @ targets.T
    forward, backward = min(k, len(targets)), min(k, len(sources))
    nearest = np.argpartition(-similarities, forward - 1, axis=1)[:, :forward]
    # In the order of the targets, so that the first of equal scores wins.
    nearest.sort(axis=1)
    near = np.take_along_axis(similarities, nearest, axis=1)
    target_means = -np.partition(-similarities, backward - 1, axis=0)[:backward].mean(axis=0)
    scores = margin_scores(
        near, near.mean(axis=1)[:, np.newaxis], target_means[nearest], margin=margin
    )
    return nearest[np.arange(len(sources)), scores.argmax(axis=1)]


def _plus(found: np.ndarray, changed: Sequence[tuple[int, str, str]]) -> dict[str, Any]:
    """Returns the error, and by kind the share of sentences mistaken for one of that kind."""
    sentences = len(found)
    gold = np.arange(sentences)
    kinds = np.array([kind for _, kind, _ in changed])
    wrong = found[found >= sentences] - sentences
    return {
        "error": float(np.mean(found != gold)),
        "kinds": {
            str(kind): float(np.sum(kinds[wrong] == kind) / sentences) for kind in np.unique(kinds)
        },
    }


def _english(files: Mapping[str, str], asked: str | None, data) -> str:
    code = next((one for one in ((asked,) if asked else _ENGLISH) if one in files), None)
    if code is None:
        raise InputError(
            f"holds no file of '{asked or _ENGLISH[0]}'",
            path=data,
            remedy="name the code of English in it: --english",
        )
    return code


def _read_perturbed(path: str, sentences: int) -> list[tuple[int, str, str]]:
    rows = []
    for number, line in read_lines(path):
        columns = line.split("\t")
        valid = len(columns) == 3 and columns[0].isdecimal() and 1 <= int(columns[0]) <= sentences
        if not valid:
            raise InputError(
                f"expected a line number up to {sentences}, a kind and a text",
                path=path,
                line=number,
                remedy="make the file by `labse corpus perturb` from the English file",
            )
        rows.append((int(columns[0]), columns[1], check_text(columns[2], path, number)))
    return rows


def units(result: dict[str, Any]) -> dict[str, float]:
    """Returns the error of each searching and searched language."""
    return {
        f"{one}-{other}": error
        for one, row in result["errors"].items()
        for other, error in row.items()
    }


def format_table(result: dict[str, Any]) -> str:
    """Returns a line per language, then the means; with "all", the matrix below; per cent."""
    errors, english = result["errors"], result["settings"]["english"]
    plus = result.get("plus", {})
    kinds = list(next(iter(plus.values()))["kinds"]) if plus else []
    titles = ["xSIM++", *kinds] if plus else []
    header = f"{'error, %':14}{'xx-en':>8}{'en-xx':>8}"
    lines = [header + "".join(f"{title:>10}" for title in titles)]
    for code in (one for one in errors if one != english):
        cells = [100 * errors[code][english], 100 * errors[english][code]]
        line = f"{code:14}" + "".join(f"{cell:8.2f}" for cell in cells)
        if plus:
            row = [plus[code]["error"], *plus[code]["kinds"].values()]
            line += "".join(f"{100 * cell:10.2f}" for cell in row)
        lines.append(line)
    means = f"{'mean':14}{100 * result['to_english']:8.2f}{100 * result['from_english']:8.2f}"
    lines.append(means + (f"{100 * result['plus_error']:10.2f}" if plus else ""))
    if result["settings"]["pairs"] == "all":
        lines.append(f"mean of all pairs: {100 * result['error']:.2f}")
    return "\n".join(lines)


def draw(result: dict[str, Any], figure: Figure) -> None:
    """Plots the errors: of all pairs a matrix, else bars to and from English."""
    errors, english = result["errors"], result["settings"]["english"]
    codes = sorted({code for one, row in errors.items() for code in (one, *row)})
    if result["settings"]["pairs"] == "all":
        figure.set_size_inches(2.5 + 0.2 * len(codes), 2 + 0.2 * len(codes))
        axes = figure.subplots()
        cells = [[100 * errors[one].get(other, np.nan) for other in codes] for one in codes]
        figure.colorbar(axes.imshow(cells), ax=axes, label="error, %")
        axes.set_yticks(range(len(codes)), codes, fontsize=7)
        axes.set_ylabel("sentence")
        axes.set_xlabel("searched")
    else:
        codes = [code for code in codes if code != english]
        figure.set_size_inches(1.5 + 0.25 * len(codes), 3.6)
        axes = figure.subplots()
        bars = {
            "xx - en": [errors[code][english] for code in codes],
            "en - xx": [errors[english][code] for code in codes],
        }
        if "plus" in result:
            bars["xx - en, xSIM++"] = [result["plus"][code]["error"] for code in codes]
        width = 0.8 / len(bars)
        for number, (label, values) in enumerate(bars.items()):
            places = np.arange(len(codes)) + width * (number - (len(bars) - 1) / 2)
            axes.bar(places, [100 * value for value in values], width, label=label)
        axes.set_ylabel("error, %", fontsize=8)
        axes.legend(fontsize=8)
    axes.set_xticks(range(len(codes)), codes, rotation=90, fontsize=7)
