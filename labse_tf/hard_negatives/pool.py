"""The pool that negatives are drawn from: its distinct texts, and what translates what."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Sequence

import numpy as np
import regex
from scipy import sparse

# Punctuation, symbols, white space and format characters; marks stay, as vowels of Indic scripts.
_NO_LETTERS = regex.compile(r"[\p{P}\p{S}\p{Z}\p{C}]+")
# A text with more partners than this says nothing of what they have in common: it is a heading, a
# placeholder, or misaligned.
_MOST_PARTNERS = 20


def text_key(text: str) -> str:
    """Returns what texts share that differ in case, width, punctuation or spaces only."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).casefold()) or text


@dataclasses.dataclass(frozen=True)
class Pool:
    """Pairs of one language, the texts of each side told apart by their keys.

    Attributes:
      sources: of each distinct source the first text.
      targets: likewise.
      pair_sources: `[pairs]` ints, each pair's place in `sources`.
      pair_targets: `[pairs]` ints, its place in `targets`.
    """

    sources: list[str]
    targets: list[str]
    pair_sources: np.ndarray
    pair_targets: np.ndarray

    def links(self) -> sparse.csr_array:
        """Returns `[sources, targets]`, 1 where the two are a pair."""
        shape = (len(self.sources), len(self.targets))
        ones = np.ones(len(self.pair_sources), np.int32)
        links = sparse.csr_array((ones, (self.pair_sources, self.pair_targets)), shape)
        links.data[:] = 1
        return links


def make_pool(sources: Sequence[str], targets: Sequence[str]) -> Pool:
    """Returns the pool of pairs; `sources[i]` and `targets[i]` are one."""
    distinct_sources, pair_sources = _distinct(sources)
    distinct_targets, pair_targets = _distinct(targets)
    return Pool(distinct_sources, distinct_targets, pair_sources, pair_targets)


def _distinct(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    places: dict[str, int] = {}
    first: list[str] = []
    found = np.empty(len(texts), np.int64)
    for index, text in enumerate(texts):
        place = places.setdefault(text_key(text), len(first))
        if place == len(first):
            first.append(text)
        found[index] = place
    return first, found


def translations(links: sparse.csr_array) -> sparse.csr_array:
    """Returns `[sources, targets]`, not 0 where a target is known to translate a source.

    That are the targets paired with it, and those paired with another source that shares a target
    with it: of "Hi." - "Salut." , "Hello." - "Salut." and "Hello." - "Bonjour." follows that
    "Bonjour." translates "Hi.", too. A text of more than 20 partners is no such bridge.
    """
    narrow_targets = links * (links.sum(axis=0) <= _MOST_PARTNERS)
    narrow_sources = sparse.csr_array(links * (links.sum(axis=1) <= _MOST_PARTNERS)[:, np.newaxis])
    shared = sparse.csr_array(narrow_targets) @ sparse.csr_array(narrow_targets).T
    return sparse.csr_array(links + shared @ narrow_sources)


def partners(links: sparse.csr_array) -> np.ndarray:
    """Returns int `[rows, most]`: the columns that a row links to, at most 20; -1 where no more."""
    counts = np.diff(links.indptr)
    width = min(int(counts.max(initial=1)), _MOST_PARTNERS)
    places = links.indptr[:-1, np.newaxis] + np.arange(width)
    inside = np.arange(width) < counts[:, np.newaxis]
    return np.where(inside, links.indices[np.where(inside, places, 0)], -1)
