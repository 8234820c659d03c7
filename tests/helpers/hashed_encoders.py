"""Deterministic encoders without TensorFlow, for `module:attribute` and as plain objects."""

from __future__ import annotations

import os
import zlib

import numpy as np


class HashedCharacters:
    """Counts character n-grams in hashed buckets; rows of unit length, zero for the empty text."""

    def __init__(self, dim: int = 64, longest: int = 3) -> None:
        self.dim = dim
        self._longest = longest

    def encode(self, texts):
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for row, text in enumerate(texts):
            for length in range(1, self._longest + 1):
                for start in range(len(text) - length + 1):
                    gram = zlib.crc32(text[start : start + length].encode("utf-8"))
                    vectors[row, gram % self.dim] += 1 if gram & 1 << 20 else -1
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / np.where(norms == 0, 1, norms)


class Table:
    """Texts with hand-made vectors; scaled as they were given."""

    def __init__(self, vectors) -> None:
        self._vectors = vectors

    def encode(self, texts):
        return np.array([self._vectors[text] for text in texts], np.float32)


class Broken:
    """Returns the value that it was made with, whatever it is asked."""

    def __init__(self, value) -> None:
        self._value = value

    def encode(self, texts):
        return self._value


hashed = HashedCharacters()


def make_hashed() -> HashedCharacters:
    return HashedCharacters(dim=32)


def needs_an_argument(dim):
    return HashedCharacters(dim)


def makes_nothing():
    return None


number = 3


def crash(*arguments):
    os.abort()
