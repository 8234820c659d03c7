"""The encoder protocol: any model that embeds sentences can be evaluated and used for mining."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from labse_tf.progress import Progress

# Texts per call of `encode`; model dirs sort them by length.
TEXTS_AT_ONCE = 8192


class Encoder(Protocol):
    """A model, as evaluation tasks and mining require it."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`, rows of unit length, in the order of the texts."""


class TextVectors:
    """The vectors of texts that were embedded together, each distinct text once.

    Attributes:
      texts: the distinct texts, in order of first occurrence.
      vectors: float32 `[len(texts), dim]`.
    """

    def __init__(self, encoder: Encoder, texts: Iterable[str]) -> None:
        """Embeds the distinct texts, with progress on stderr."""
        self.texts = list(dict.fromkeys(texts))
        self._places = {text: place for place, text in enumerate(self.texts)}
        parts = []
        with Progress("embed", total=len(self.texts), unit="sentence") as progress:
            for start in range(0, len(self.texts), TEXTS_AT_ONCE):
                some = self.texts[start : start + TEXTS_AT_ONCE]
                parts.append(np.asarray(encoder.encode(some), np.float32))
                progress.update(len(some))
        self.vectors = np.concatenate(parts)

    def __getitem__(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`; equal texts have bitwise equal rows."""
        return self.vectors[[self._places[text] for text in texts]]


def list_texts(texts: Iterable[str]) -> list[str]:
    """Returns the argument of `encode`, anything of one dimension, as a list of checked texts.

    Raises:
      TypeError: if it is one string, a mapping or a table, or if an item is not a string.
      ValueError: if an item has half of a surrogate pair, which UTF-8 cannot encode.
    """
    if isinstance(texts, str | bytes | Mapping | set | frozenset) or getattr(texts, "ndim", 1) != 1:
        raise TypeError(f"encode() takes a list of strings, not one {type(texts).__name__}")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"encode() takes strings, and text {index} is {text!r:.80}; leave it out"
            )
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            problem = f"text {index} has half of a surrogate pair at character {error.start}"
            remedy = 'replace it: text.encode("utf-8", "replace").decode()'
            raise ValueError(f"{problem}; {remedy}") from error
    return texts
