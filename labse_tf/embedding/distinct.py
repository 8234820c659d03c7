"""Embeds texts, each distinct text once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.progress import Progress

# Texts per call of `encode`; model dirs sort them by length.
TEXTS_AT_ONCE = 8192


class TextVectors:
    """The vectors of texts that were embedded together.

    Attributes:
      texts: the distinct texts, in order of first occurrence.
      vectors: float32 `[len(texts), dim]`.
    """

    def __init__(self, encoder: Encoder, texts: Iterable[str]) -> None:
        """Embeds the distinct texts, with progress on stderr."""
        self.texts = list(dict.fromkeys(texts))
        self._places = {text: place for place, text in enumerate(self.texts)}
        with Progress("embed", total=len(self.texts), unit="sentence") as progress:
            self.vectors = embed(encoder, self.texts, progress)

    def __getitem__(self, texts: Sequence[str]) -> np.ndarray:
        """Returns float32 `[len(texts), dim]`; equal texts have bitwise equal rows."""
        return self.vectors[[self._places[text] for text in texts]]


def embed(encoder: Encoder, texts: Sequence[str], progress: Progress) -> np.ndarray:
    """Returns float32 `[len(texts), dim]`, in order; `progress` counts sentences."""
    parts = []
    for start in range(0, len(texts), TEXTS_AT_ONCE):
        part = texts[start : start + TEXTS_AT_ONCE]
        parts.append(np.asarray(encoder.encode(part), np.float32))
        progress.update(len(part))
    return np.concatenate(parts)
