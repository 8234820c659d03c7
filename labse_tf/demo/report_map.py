"""The sentences in the demo's report: a map of them in two dimensions, queries with neighbours."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from labse_tf.coverage.plot import FAMILIES, family_of
from labse_tf.languages import language_of, script_of

PERPLEXITY = 30
QUERIES = 6
LABELS = 8
MAP_SIZE = (900, 620)  # of the projection, in SVG units
LABEL_SIZE = (210, 18)
RIGHT_TO_LEFT = ("Arab", "Hebr")


class Sentence(NamedTuple):
    """A sentence of the report.

    Attributes:
      text: the sentence.
      language: the paper's code.
      group: the same number for an English message and all of its translations.
    """

    text: str
    language: str
    group: int


def language_colours(languages: Sequence[str]) -> dict[str, str]:
    """Returns a CSS colour for each language: the hue shows the script, the shade the language.

    All have medium lightness, so that they are visible on light and dark backgrounds.
    """
    members: dict[str, list[str]] = defaultdict(list)
    for language in sorted(set(languages)):
        members[family_of(language).name].append(language)
    colours = {}
    for codes in members.values():
        for code, place in zip(codes, np.linspace(-1, 1, len(codes) + 2)[1:-1], strict=True):
            hue = family_of(code).hue + 12 * place
            # Three shades in rotation distinguish successive languages.
            lightness = 46 + 7 * (codes.index(code) % 3)
            colours[code] = f"hsl({hue % 360:.0f} 68% {lightness}%)"
    return colours


def project(vectors: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Returns positions in the unit square by t-SNE of the cosine distances, float `[n, 2]`.

    Args:
      vectors: float `[n, dim]`, n >= 3.
      seed: of the optimisation, which starts from the first two principal components.
    """
    perplexity = min(PERPLEXITY, (len(vectors) - 1) / 3)
    model = TSNE(metric="cosine", init="pca", perplexity=perplexity, random_state=seed)
    # Several threads sum in a different order each time, and on busy cores they mostly wait.
    with threadpool_limits(limits=1):
        places = model.fit_transform(vectors)
    low, high = places.min(axis=0), places.max(axis=0)
    return (places - low) / np.maximum(high - low, 1e-9)


def find_neighbours(
    sentences: Sequence[Sentence], vectors: np.ndarray, *, count: int = 5
) -> list[list[tuple[int, float]]]:
    """Returns for each sentence the nearest in other languages: `(index, cosine)`, nearest first.

    The same string in another language (Danish and Norwegian share many) is skipped: finding it
    says nothing about the model.

    Args:
      sentences: n sentences.
      vectors: float `[n, dim]`, unit rows.
      count: maximum number of neighbours per sentence.
    """
    cosines = vectors @ vectors.T
    for attribute in ("language", "text"):
        _, ids = np.unique([getattr(s, attribute) for s in sentences], return_inverse=True)
        cosines[ids[:, None] == ids[None, :]] = -np.inf
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
    return [
        [(int(i), float(row[i])) for i in places if np.isfinite(row[i])]
        for row, places in zip(cosines, nearest, strict=True)
    ]


def draw_map(sentences: Sequence[Sentence], vectors: np.ndarray) -> dict[str, Any]:
    """Returns the points of the projection in SVG units, its labels and its legend."""
    margin = np.array([16, 24])
    places = margin + project(vectors) * (np.array(MAP_SIZE) - 2 * margin)
    codes = sorted({sentence.language for sentence in sentences})
    colours = language_colours(codes)
    groups = defaultdict(list)
    for place, sentence in zip(places, sentences, strict=True):
        groups[sentence.group].append(place)
    centres = {group: np.median(members, axis=0) for group, members in groups.items()}
    english = {s.group: s.text for s in sentences if s.language == "en"}
    return {
        "size": MAP_SIZE,
        "points": [
            {
                "x": x,
                "y": y,
                "sentence": sentence,
                "name": language_of(sentence.language).name,
                "colour": colours[sentence.language],
            }
            for (x, y), sentence in zip(places, sentences, strict=True)
        ],
        "labels": [
            {"x": x, "y": y, "text": english[group], "centre": centres[group], "rays": rays}
            for group, (x, y) in _place_labels(centres, LABELS).items()
            for rays in [groups[group]]
        ],
        "messages": len(groups),
        "legend": [
            (family, [(code, language_of(code).name, colours[code]) for code in members])
            for family in FAMILIES
            if (members := [code for code in codes if family_of(code) == family])
        ],
    }


def _place_labels(centres: dict[int, np.ndarray], count: int) -> dict[int, tuple[float, float]]:
    """Returns the centres of the first `count` labels that fit above their group's centre."""
    width, height = LABEL_SIZE
    placed: dict[int, tuple[float, float]] = {}
    for group, (x, y) in centres.items():
        x = min(max(x, width / 2), MAP_SIZE[0] - width / 2)
        y = max(y - 22, height)
        if all(abs(x - a) >= width or abs(y - b) >= 2 * height for a, b in placed.values()):
            placed[group] = (x, y)
        if len(placed) == count:
            break
    return placed


def neighbourhood(sentences: Sequence[Sentence], vectors: np.ndarray) -> dict[str, Any]:
    """Returns queries with their neighbours, and the share of all neighbours that are right."""
    neighbours = find_neighbours(sentences, vectors)
    english = {s.group: s.text for s in sentences if s.language == "en"}

    def describe(index: int, query: int, cosine: float = 1.0) -> dict[str, Any]:
        sentence = sentences[index]
        return {
            "sentence": sentence,
            "name": language_of(sentence.language).name,
            # The HTML attribute; "auto" goes by the first word, which is often a Latin name.
            "dir": "rtl" if script_of(sentence.language) in RIGHT_TO_LEFT else "auto",
            "english": english[sentence.group],
            "cosine": cosine,
            "right": sentence.group == sentences[query].group,
        }

    right = [
        sentences[i].group == sentence.group
        for sentence, found in zip(sentences, neighbours, strict=True)
        for i, _ in found
    ]
    sizes = Counter(sentence.group for sentence in sentences)
    return {
        "queries": [
            {
                **describe(query, query),
                "neighbours": [describe(i, query, cosine) for i, cosine in neighbours[query]],
            }
            for query in _choose_queries(sentences)
        ],
        "right": float(np.mean(right)),
        "chance": sum(size * (size - 1) for size in sizes.values())
        / (len(sentences) * (len(sentences) - 1)),
    }


def _choose_queries(sentences: Sequence[Sentence], *, seed: int = 0) -> list[int]:
    """Returns one random sentence for each of the commonest scripts, each of another group."""
    scripts = [script_of(sentence.language) for sentence in sentences]
    order = list(range(len(sentences)))
    random.Random(seed).shuffle(order)
    queries: list[int] = []
    for script, _ in Counter(scripts).most_common():
        taken = {sentences[i].group for i in queries}
        free = (
            i
            for i in order
            if scripts[i] == script
            and sentences[i].language != "en"
            and sentences[i].group not in taken
        )
        queries.extend([i for i in [next(free, None)] if i is not None])
        if len(queries) == QUERIES:
            break
    return queries
