"""2-D projection of the report's sentences, and their nearest neighbours in other languages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from labse_tf.coverage.plot import family_of
from labse_tf.languages import script_of

PERPLEXITY = 30
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


def writing_direction(language: str) -> str:
    """Returns the HTML attribute `dir`; "auto" goes by the first word, often a Latin name."""
    return "rtl" if script_of(language) in RIGHT_TO_LEFT else "auto"


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
