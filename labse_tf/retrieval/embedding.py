"""Embeds the sentences of a job to vectors on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from labse_tf.embedding.lines import embed_lines
from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.retrieval.sentences import Sentences
from labse_tf.retrieval.vectors import Vectors, not_unit, open_vectors


def embed_sides(
    sides: Sequence[Sentences], folder: Path, open_encoder: Callable[[], Encoder]
) -> list[Vectors]:
    """Writes, or finishes writing, `source.npy` and `target.npy` in `folder`, and opens them.

    Args:
      sides: source and target, the same as before an interruption.
      folder: the job's work folder.
      open_encoder: called only if there is something to embed.

    Raises:
      InputError: if the encoder's vector for a sentence does not have unit length.
    """
    files = [folder / f"{name}.npy" for name in ("source", "target")]
    if not all(file.exists() for file in files):
        encoder = open_encoder()
        for side, file in zip(sides, files, strict=True):
            embed_lines(
                side.texts,
                _UnitEncoder(encoder, side),
                file,
                total=len(side.texts),
                description=f"embed {file.stem}",
            )
    return [open_vectors(file) for file in files]


class _UnitEncoder:
    """An encoder that reports sentences whose vector does not have unit length."""

    def __init__(self, encoder: Encoder, sentences: Sentences) -> None:
        self._encoder = encoder
        self._sentences = sentences

    @property
    def texts_cut(self) -> int | None:
        return getattr(self._encoder, "texts_cut", None)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._encoder.encode(texts)
        bad = not_unit(vectors)
        if len(bad):
            text = texts[bad[0]]
            raise InputError(
                f"the model's vector for '{text[:60]}' is not of unit length",
                path=self._sentences.path,
                line=int(self._sentences.lines[self._sentences.texts.index(text)]) + 1,
                remedy="remove the sentence, or use another model",
            )
        return vectors
