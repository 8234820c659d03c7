"""The task `xsim`: errors of finding translations by margin, and against perturbed English.

xSIM (Heffernan et al. 2022, arXiv 2205.12654) searches each sentence of one language among the same
sentences of another: of the k nearest, that with the highest margin score (Artetxe and Schwenk
2019, arXiv 1811.01136) should be its translation; a tie with another one is an error. xSIM++ (Chen
et al. 2023, arXiv 2306.12907) adds English sentences to the searched ones that differ in a number,
a name or a negation; `labse corpus perturb` makes them by `perturb`. Both count errors.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder, TextVectors
from labse_tf.errors import InputError
from labse_tf.evaluation.bitext import all_cosines, found
from labse_tf.evaluation.result import Column, Part, Result, mean_of
from labse_tf.evaluation.task import Option, make_record
from labse_tf.evaluation.texts import find_pool, read_columns, read_pool
from labse_tf.languages import find_code
from labse_tf.progress import Progress
from labse_tf.retrieval.mining import MARGINS, margin_scores

TYPE = "BitextMining"
PRIMARY_METRIC = "error"
FOLDERS = ("flores", "flores200", "ntrex128")
LOWER_IS_BETTER = True
DATA = "<code>.txt or FLORES' <code>.devtest, the same sentences in each: errors of the search"
K = 4
OPTIONS = (
    Option("margin", "of the scores (default ratio)", choices=MARGINS),
    Option("k", f"neighbours of a sentence (default {K})", type=int, metavar="K", least=1),
    Option("perturbed", "from `labse corpus perturb` on the English file: xSIM++", metavar="FILE"),
)

# Draws of each place that can be changed; equal ones are dropped.
_TRIALS = 8
NUMBER, ENTITY, NEGATION = "number", "entity", "negation"
KINDS = (NUMBER, ENTITY, NEGATION)

_NUMBER = re.compile(r"\d+")
_WORDS = re.findall(
    r"\w+",
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty "
    "seventy eighty ninety hundred thousand million billion",
)
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
# Behind a lower-case word or a comma: not at the start of a sentence.
_NAME = re.compile(r"(?<=[a-z,;] )(?!I\b)[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")
_NOT = re.compile(r" not\b")
_AUXILIARY = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|may|might|has|have|had|does|do|did)\b"
    r"(?! not\b|['’])"
)
_OPPOSITES = dict(
    re.findall(
        r"(\w+)/(\w+)",
        "more/less before/after always/never all/none many/few first/last new/old good/bad "
        "high/low higher/lower large/small larger/smaller increase/decrease increased/decreased "
        "above/below early/late earlier/later strong/weak win/lose won/lost rise/fall rose/fell "
        "inside/outside north/south east/west northern/southern eastern/western open/closed "
        "hot/cold fast/slow long/short true/false right/wrong young/old up/down with/without "
        "possible/impossible legal/illegal public/private winter/summer day/night",
    )
)
_OPPOSITES |= {other: one for one, other in reversed(_OPPOSITES.items())}
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b(?!['’])", re.IGNORECASE)


def evaluate(
    encoder: Encoder,
    data: str | os.PathLike[str],
    *,
    margin: str = "ratio",
    k: int = K,
    perturbed: str | None = None,
) -> dict[str, Any]:
    """Returns the record of an encoder.

    `errors`: by language, `to` and `from` English, the share of sentences whose translation was not
    found; `to_english`, `from_english`: means over languages; `error`: the mean of both. With
    `perturbed`, `plus`: by language, the `error` of searching English with its perturbed sentences,
    and by kind the share of sentences for which one of that kind was found instead; `plus_error`:
    the mean over languages.
    """
    files = find_pool(data)
    # The shortest: of a language without a region, if there are several.
    english = min((code for code in files if find_code(code) == "en"), key=len, default=None)
    if english is None:
        raise InputError("holds no file of 'en'", path=data, remedy="add it")
    texts = read_pool(files)
    changed = _read_perturbed(perturbed, len(texts[english])) if perturbed else []
    changed_texts = [text for *_, text in changed]
    vectors = TextVectors(encoder, itertools.chain(*texts.values(), changed_texts))
    pool = vectors[texts.pop(english)]
    whole = np.concatenate([pool, vectors[changed_texts]]) if changed else pool
    kinds = np.array([kind for _, kind, _ in changed])
    errors, plus = {}, {}
    with Progress("search", total=len(texts), unit="language") as progress:
        for code, lines in progress.each(texts.items()):
            own = vectors[lines]
            errors[code] = {
                "to": _error(score(own, pool, k=k, margin=margin)),
                "from": _error(score(pool, own, k=k, margin=margin)),
            }
            if changed:
                plus[code] = _plus(score(own, whole, k=k, margin=margin), kinds)
    means = mean_of(errors.values())
    figures: dict[str, Any] = {
        "error": (means["to"] + means["from"]) / 2,
        "to_english": means["to"],
        "from_english": means["from"],
        "errors": errors,
    }
    if changed:
        figures |= {"plus": plus, "plus_error": mean_of(plus.values(), ["error"])["error"]}
    paths = [*files.values(), *filter(None, [perturbed])]
    settings = {"margin": margin, "k": k, "english": english, "perturbed": perturbed}
    return make_record("xsim", encoder, data, paths, settings, figures)


def _error(scores: np.ndarray) -> float:
    return float(np.mean(~found(scores)))


def score(sources: np.ndarray, targets: np.ndarray, *, k: int, margin: str) -> np.ndarray:
    """Returns the margin scores of each source and its k nearest targets, of others -inf.

    The rows are of unit length, float32 `[n, dim]` and `[m, dim]`. All similarities `[n, m]` are
    held in memory; `k` is at most n and m.
    """
    cosines = all_cosines(sources, targets)
    forward, backward = min(k, len(targets)), min(k, len(sources))
    nearest = np.argpartition(-cosines, forward - 1, axis=1)[:, :forward]
    near = np.take_along_axis(cosines, nearest, axis=1)
    target_means = -np.partition(-cosines, backward - 1, axis=0)[:backward].mean(axis=0)
    scores = np.full_like(cosines, -np.inf)
    means = near.mean(axis=1)[:, np.newaxis], target_means[nearest]
    np.put_along_axis(scores, nearest, margin_scores(near, *means, margin=margin), axis=1)
    return scores


def _plus(scores: np.ndarray, kinds: np.ndarray) -> dict[str, Any]:
    """Returns the error, and by kind the share of sentences mistaken for one of that kind."""
    sentences, best = len(scores), scores.argmax(axis=1)
    wrong = kinds[best[best >= sentences] - sentences]
    shares = {str(kind): float(np.sum(wrong == kind) / sentences) for kind in np.unique(kinds)}
    return {"error": _error(scores), "kinds": shares}


def _read_perturbed(path: str, sentences: int) -> list[tuple[int, str, str]]:
    rows = read_columns(path, ("line number", "kind", "text"), only=True)
    for number, (place, *_) in enumerate(rows, 1):
        if not (place.isdecimal() and 1 <= int(place) <= sentences):
            problem = f"expected a line number up to {sentences}, a kind and a text"
            remedy = "make the file by `labse corpus perturb` from the English file"
            raise InputError(problem, path=path, line=number, remedy=remedy)
    return [(int(place), kind, text) for place, kind, text in rows]


def describe(record: Mapping[str, Any]) -> Result:
    """Returns the errors to and from English, and of xSIM++."""
    errors, plus = record["errors"], record.get("plus", {})
    rows = {code: row | plus.get(code, {}) for code, row in errors.items()}
    columns = [
        Column("error, %: xx-en", "to", 2, style="bar"),
        Column("en-xx", "from", 2, style="bar"),
    ]
    means = {"to": record["to_english"], "from": record["from_english"]}
    if plus:
        columns.append(Column("xSIM++", "error", 2, style="bar"))
        columns += [Column(kind, f"kinds.{kind}", 2) for kind in next(iter(plus.values()))["kinds"]]
        means["error"] = record["plus_error"]
    units = {f"{code} {way}": error for code, row in errors.items() for way, error in row.items()}
    return Result([Part("", rows, columns, {"mean": means})], units)


def perturb(
    sentences: Sequence[str], *, per_kind: int = 4, seed: int = 0
) -> Iterator[tuple[int, str, str]]:
    """Yields the place of a sentence, a kind of KINDS, and a text with another meaning.

    Chen et al. (section 3) use a parser and a thesaurus; here rules change digits and number words,
    make a capitalised name inside a sentence another name of the text, add `not` to an auxiliary
    verb or take it away, and replace words by opposites, as the text and the seed alone decide. At
    most `per_kind` texts of a kind are made of one sentence; all differ, also from `sentences`.
    """
    names = sorted({name for text in sentences for name in _NAME.findall(text)})
    known = set(sentences)
    changes: dict[str, Callable[[str, random.Random], Iterator[str]]] = {
        NUMBER: _other_numbers,
        ENTITY: lambda text, draw: _other_names(text, draw, names),
        NEGATION: _negations,
    }
    for place, text in enumerate(sentences):
        for kind, change in changes.items():
            draw = random.Random(f"{seed} {kind} {text}")
            made = dict.fromkeys(other for other in change(text, draw) if other not in known)
            yield from ((place, kind, other) for other in itertools.islice(made, per_kind))


def _other_numbers(text: str, draw: random.Random) -> Iterator[str]:
    digits, words = list(_NUMBER.finditer(text)), list(_NUMBER_WORD.finditer(text))
    for _ in range(_TRIALS):
        for match in digits:
            first = draw.choice("123456789") if match[0][0] != "0" else "0"
            rest = (draw.choice("0123456789") for _ in match[0][1:])
            yield _replace(text, match, first + "".join(rest))
        for match in words:
            yield _replace(text, match, draw.choice(_WORDS))


def _other_names(text: str, draw: random.Random, names: Sequence[str]) -> Iterator[str]:
    for match in _TRIALS * list(_NAME.finditer(text)):
        yield _replace(text, match, draw.choice(names))


def _negations(text: str, draw: random.Random) -> Iterator[str]:
    changes = [(match, "") for match in _NOT.finditer(text)]
    changes += [(match, f"{match[0]} not") for match in _AUXILIARY.finditer(text)]
    changes += [(match, _OPPOSITES[match[0].lower()]) for match in _OPPOSITE.finditer(text)]
    draw.shuffle(changes)
    yield from (_replace(text, *change) for change in changes)


def _replace(text: str, match: re.Match, other: str) -> str:
    """Returns the text with `other`, capitalised alike, in place of the match."""
    if match[0][0].isupper():
        other = other[:1].upper() + other[1:]
    return text[: match.start()] + other + text[match.end() :]
