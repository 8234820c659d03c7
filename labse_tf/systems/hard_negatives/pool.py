"""The pool from which negatives are chosen: its distinct texts and known translations."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Sequence

import numpy as np
import regex
from scipy import sparse

# Punctuation, symbols, white space and format characters. Marks stay: Indic vowels are marks.
_NO_LETTERS = regex.compile(r"[\p{P}\p{S}\p{Z}\p{C}]+")
# The partners of a text with more than this need not be translations of each other: the text is a
# heading, a placeholder, or misaligned.
_MOST_PARTNERS = 20


def text_key(text: str) -> str:
    """Returns a key shared by texts that differ only in case, width, punctuation or spaces."""
    return _NO_LETTERS.sub("", unicodedata.normalize("NFKC", text).casefold()) or text


@dataclasses.dataclass(frozen=True)
class Pool:
    """Pairs of one language; the texts of each side are distinct by `text_key`.

    Attributes:
      sources: the first text of each distinct source.
      targets: the first text of each distinct target.
      pair_sources: `[pairs]` ints, the index of each pair's source in `sources`.
      pair_targets: `[pairs]` ints, the index of each pair's target in `targets`.
    """

    sources: list[str]
    targets: list[str]
    pair_sources: np.ndarray
    pair_targets: np.ndarray

    def links(self) -> sparse.csr_array:
        """Returns `[sources, targets]`, 1 where they are a pair."""
        shape = (len(self.sources), len(self.targets))
        ones = np.ones(len(self.pair_sources), np.int32)
        links = sparse.csr_array((ones, (self.pair_sources, self.pair_targets)), shape)
        links.data[:] = 1
        return links


def make_pool(sources: Sequence[str], targets: Sequence[str]) -> Pool:
    """Returns the pool of the pairs `(sources[i], targets[i])`."""
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

    These are the targets paired with it, and those paired with another source that shares a target
    with it: "Hi." - "Salut.", "Hello." - "Salut." and "Hello." - "Bonjour." imply that "Bonjour."
    also translates "Hi.". Texts with more than 20 partners do not link others in this way.
    """
    narrow_targets = links * (links.sum(axis=0) <= _MOST_PARTNERS)
    narrow_sources = sparse.csr_array(links * (links.sum(axis=1) <= _MOST_PARTNERS)[:, np.newaxis])
    shared = sparse.csr_array(narrow_targets) @ sparse.csr_array(narrow_targets).T
    return sparse.csr_array(links + shared @ narrow_sources)


def partners(links: sparse.csr_array) -> np.ndarray:
    """Returns int `[rows, most]`: the columns that each row links to, at most 20; -1 as padding."""
    counts = np.diff(links.indptr)
    width = min(int(counts.max(initial=1)), _MOST_PARTNERS)
    places = links.indptr[:-1, np.newaxis] + np.arange(width)
    inside = np.arange(width) < counts[:, np.newaxis]
    return np.where(inside, links.indices[np.where(inside, places, 0)], -1)
