"""Embeds any number of texts: a window of them at a time, while a thread tokenises the next."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

from labse_tf.progress import Progress


class WindowEncoder(abc.ABC):
    """Encoder (`encode(list of str)`) that goes through the texts in windows.

    Attributes:
      dim: the dimension of the vectors.
      sequence_length: longer texts are truncated to this many tokens, special ones included.
      texts_cut: number of texts truncated so far.
    """

    dim: int
    sequence_length: int
    texts_cut: int = 0
    _texts_per_window: int
    # [CLS] and [SEP].
    _special_tokens: int = 2

    @abc.abstractmethod
    def _tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Maps `[n]` strings to int32 ragged `[n, (tokens)]`, without special tokens."""

    @abc.abstractmethod
    def _encode_window(
        self, tokens: tf.RaggedTensor, vectors: np.ndarray, progress: Progress | None
    ) -> None:
        """Fills `vectors`, `[n, dim]`, with rows of unit length: the embeddings of `[n]` texts."""

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> np.ndarray:
        """Returns one embedding per text, in the order of the texts.

        With float32 encoders, the embedding of a text does not depend on the other texts, up to
        rounding (within 1e-5). With int8 encoders it does: they use one scale for a whole batch.

        Args:
          texts: any strings, including empty ones.
          show_progress: show progress on stderr.

        Returns:
          float32 `[len(texts), dim]`, rows of unit length.
        """
        if isinstance(texts, str):
            raise TypeError("encode() takes a list of strings, not one string")
        vectors = np.empty((len(texts), self.dim), np.float32)
        with contextlib.ExitStack() as stack:
            progress = None
            if show_progress:
                progress = stack.enter_context(Progress("embed", total=len(texts), unit="sentence"))
            start = 0
            for tokens in self._tokenized_windows(texts):
                lengths = tokens.row_lengths().numpy() + self._special_tokens
                self.texts_cut += int((lengths > self.sequence_length).sum())
                self._encode_window(tokens, vectors[start : start + len(lengths)], progress)
                start += len(lengths)
        return vectors

    def _tokenized_windows(self, texts: Sequence[str]) -> Iterator[tf.RaggedTensor]:
        """Yields the tokens of each window; a thread tokenises the next one meanwhile."""

        def tokenize(start: int) -> tf.RaggedTensor:
            return self._tokenize(tf.constant(list(texts[start : start + self._texts_per_window])))

        with ThreadPoolExecutor(1) as executor:
            coming = None
            for start in range(0, len(texts), self._texts_per_window):
                ready, coming = coming, executor.submit(tokenize, start)
                if ready:
                    yield ready.result()
            if coming:
                yield coming.result()
