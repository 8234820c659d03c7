"""The task `xsim`: errors of finding translations by margin, and against perturbed English.

xSIM (Heffernan et al. 2022, arXiv 2205.12654) searches each sentence of one language among the same
sentences of another: of the k nearest, that with the highest margin score (Artetxe and Schwenk
2019, arXiv 1811.01136) should be its translation; a tie with another one is an error. xSIM++ (Chen
et al. 2023, arXiv 2306.12907) adds English sentences to what is searched that differ in a number, a
name or a negation; `labse corpus perturb` makes them. Both count errors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.errors import InputError
from labse_tf.evaluation.bitext import all_cosines, found
from labse_tf.evaluation.result import Column, Part, Result, matrix
from labse_tf.evaluation.task import Option, make_record
from labse_tf.evaluation.texts import find_pool, read_columns, read_pool
from labse_tf.progress import Progress
from labse_tf.retrieval.mining import MARGINS, margin_scores

PRIMARY_METRIC = "error"
FOLDERS = ("flores", "flores200", "ntrex128")
LOWER_IS_BETTER = True
DATA = "<code>.txt or FLORES' <code>.devtest, the same sentences in each: errors of the search"
K = 4
OPTIONS = (
    Option("margin", "of the scores (default ratio)", choices=MARGINS),
    Option("k", f"neighbours of a sentence (default {K})", type=int, metavar="K", least=1),
    Option(
        "pairs",
        "to and from English, or of all languages (default english)",
        choices=("english", "all"),
    ),
    Option("english", "code of English (default eng, eng_Latn or en)", metavar="CODE"),
    Option("perturbed", "from `labse corpus perturb` on the English file: xSIM++", metavar="FILE"),
)

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

    Returns:
      The record. `errors`: by searching and searched language, the share of sentences whose
      translation was not found; `to_english`, `from_english`: means over the other languages;
      `error`: the mean of all `errors`. With `perturbed`, `plus`: by language, the `error` of
      searching English with its perturbed sentences, and by kind the share of sentences for which
      one of that kind was found instead; `plus_error`: the mean over languages.

    Example: with an encoder that counts letters.

      >>> Path("xsim").mkdir()
      >>> _ = Path("xsim/deu.txt").write_text("Hallo Welt.\\nDie Katze.\\nDie Hunde.\\n")
      >>> _ = Path("xsim/eng.txt").write_text("Hello world.\\nThe cat.\\nThe dogs.\\n")
      >>> evaluate(encoder, "xsim", k=2)["errors"]["deu"]["eng"] < 0.5
      True
    """
    files = find_pool(data)
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
    with Progress("search", total=len(wanted), unit="pair") as progress:
        for one, other in progress.each(wanted):
            scores = score(by_code[one], by_code[other], k=k, margin=margin)
            errors.setdefault(one, {})[other] = float(np.mean(~found(scores)))
    figures: dict[str, Any] = {
        "error": float(np.mean([error for row in errors.values() for error in row.values()])),
        "to_english": float(np.mean([row[english] for row in errors.values() if english in row])),
        "from_english": float(np.mean(list(errors[english].values()))),
        "errors": errors,
    }
    if changed:
        pool = np.concatenate([by_code[english], vectors[[row[2] for row in changed]]])
        others = {code: one for code, one in by_code.items() if code != english}
        figures["plus"] = {
            code: _plus(score(one, pool, k=k, margin=margin), changed)
            for code, one in others.items()
        }
        figures["plus_error"] = float(np.mean([row["error"] for row in figures["plus"].values()]))
    paths = [*files.values(), *([perturbed] if perturbed else [])]
    directions = ("all",) if pairs == "all" else ("xx -> en", "en -> xx")
    settings = {
        "margin": margin,
        "k": k,
        "pairs": pairs,
        "english": english,
        "perturbed": perturbed,
    }
    return make_record("xsim", encoder, data, paths, directions, settings, figures)


def score(sources: np.ndarray, targets: np.ndarray, *, k: int, margin: str) -> np.ndarray:
    """Returns the margin scores of each source and its k nearest targets, of others -inf.

    Args:
      sources: float32 `[n, dim]`, unit rows.
      targets: float32 `[m, dim]`, unit rows; all similarities are held in memory.
      k: at most n and m are used.
      margin: one of MARGINS.

    Returns:
      float32 `[n, m]`.
    """
    cosines = all_cosines(sources, targets)
    forward, backward = min(k, len(targets)), min(k, len(sources))
    nearest = np.argpartition(-cosines, forward - 1, axis=1)[:, :forward]
    near = np.take_along_axis(cosines, nearest, axis=1)
    target_means = -np.partition(-cosines, backward - 1, axis=0)[:backward].mean(axis=0)
    scores = np.full_like(cosines, -np.inf)
    of_near = margin_scores(
        near, near.mean(axis=1)[:, np.newaxis], target_means[nearest], margin=margin
    )
    np.put_along_axis(scores, nearest, of_near, axis=1)
    return scores


def _plus(scores: np.ndarray, changed: Sequence[tuple[int, str, str]]) -> dict[str, Any]:
    """Returns the error, and by kind the share of sentences mistaken for one of that kind."""
    sentences, best = len(scores), scores.argmax(axis=1)
    kinds = np.array([kind for _, kind, _ in changed])
    wrong = best[best >= sentences] - sentences
    return {
        "error": float(np.mean(~found(scores))),
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
    rows = read_columns(path, ("line number", "kind", "text"), only=True)
    for number, (place, *_) in enumerate(rows, 1):
        if not (place.isdecimal() and 1 <= int(place) <= sentences):
            raise InputError(
                f"expected a line number up to {sentences}, a kind and a text",
                path=path,
                line=number,
                remedy="make the file by `labse corpus perturb` from the English file",
            )
    return [(int(place), kind, text) for place, kind, text in rows]


def describe(record: Mapping[str, Any]) -> Result:
    """Returns the errors to and from English, of xSIM++, and of all pairs as a matrix."""
    errors, english, plus = record["errors"], record["settings"]["english"], record.get("plus", {})
    rows = {
        code: {"to": row[english], "from": errors[english][code]} | plus.get(code, {})
        for code, row in errors.items()
        if code != english
    }
    columns = [
        Column("error, %: xx-en", "to", 2, style="bar"),
        Column("en-xx", "from", 2, style="bar"),
    ]
    means = {"to": record["to_english"], "from": record["from_english"]}
    if plus:
        columns.append(Column("xSIM++", "error", 2, style="bar"))
        columns += [Column(kind, f"kinds.{kind}", 2) for kind in next(iter(plus.values()))["kinds"]]
        means["error"] = record["plus_error"]
    parts, notes = [Part("", rows, columns, {"mean": means})], []
    if record["settings"]["pairs"] == "all":
        parts.append(matrix("sentence, searched", errors, in_table=False))
        notes.append(f"mean of all pairs: {100 * record['error']:.2f}")
    units = {f"{one}-{two}": error for one, row in errors.items() for two, error in row.items()}
    return Result(parts, units, notes)
