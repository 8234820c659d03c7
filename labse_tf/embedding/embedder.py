"""Embeds text with a model dir, as the paper defines it: the normalised `default` output."""

from __future__ import annotations

import abc
import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  The preprocessor's ops live in it.

from labse_tf.embedding.model_dir import find_model_dir
from labse_tf.embedding.runtimes import open_runtime
from labse_tf.progress import Progress

# Texts of a window are sorted by length: in batches of it little is padding.
_TEXTS_PER_WINDOW = 2048
# What a layer makes of a batch stays in the processor's caches.
_TOKENS_PER_BATCH = 2048
# Few shapes: memory of one batch fits the next.
_LENGTH_STEP = 8


class SortingEncoder(abc.ABC):
    """Sorts texts by length inside a window, so that little is padding.

    Attributes:
      dim: the length of a vector.
      sequence_length: longer texts are cut to this many tokens, [CLS] and [SEP] included.
      texts_cut: how many of the texts so far were longer.
    """

    dim: int
    sequence_length: int
    texts_cut: int = 0

    @abc.abstractmethod
    def _tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """`[n]` strings -> int32 ragged `[n, (tokens)]`, without special tokens."""

    @abc.abstractmethod
    def _embed(self, tokens: tf.RaggedTensor, length: int) -> np.ndarray:
        """Ragged `[n, (tokens)]`, to be padded to `length` -> `[n, dim]`, not normalised."""

    def encode(self, texts: Sequence[str], *, show_progress: bool = False) -> np.ndarray:
        """Returns an embedding a text, in the order of the texts.

        A text has the same embedding whatever is embedded with it, up to rounding: float32
        encoders are within 1e-5. Those in int8 scale what a batch holds together, and are not.

        Args:
          texts: any strings, the empty one too.
          show_progress: on stderr.

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
                size = int(tokens.nrows())
                self._encode_window(tokens, vectors[start : start + size], progress)
                start += size
        return vectors

    def _tokenized_windows(self, texts: Sequence[str]) -> Iterator[tf.RaggedTensor]:
        """Yields the tokens of each window, while those of the next are made in a thread."""

        def tokenize(start: int) -> tf.RaggedTensor:
            return self._tokenize(tf.constant(list(texts[start : start + _TEXTS_PER_WINDOW])))

        with ThreadPoolExecutor(1) as executor:
            coming = None
            for start in range(0, len(texts), _TEXTS_PER_WINDOW):
                ready, coming = coming, executor.submit(tokenize, start)
                if ready:
                    yield ready.result()
            if coming:
                yield coming.result()

    def _encode_window(
        self, tokens: tf.RaggedTensor, vectors: np.ndarray, progress: Progress | None
    ) -> None:
        lengths = tokens.row_lengths().numpy() + 2
        self.texts_cut += int((lengths > self.sequence_length).sum())
        lengths = np.minimum(lengths, self.sequence_length)
        order = np.argsort(-lengths, kind="stable")
        start = 0
        while start < len(order):
            longest = -(-int(lengths[order[start]]) // _LENGTH_STEP) * _LENGTH_STEP
            longest = min(longest, self.sequence_length)
            rows = order[start : start + max(1, _TOKENS_PER_BATCH // longest)]
            pooled = self._embed(tf.gather(tokens, rows), longest)
            vectors[rows] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
            start += len(rows)
            if progress:
                progress.update(len(rows))


class Embedder(SortingEncoder):
    """A loaded model dir."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Loads the preprocessor and an encoder.

        Args:
          path: a model dir, for its `encoder`; or the file of an encoder in it, such as
            MODEL_DIR/onnx/model_int8.onnx or MODEL_DIR/lite/encoder_int8.tflite.

        Raises:
          InputError: if it is no model dir, or the file is no such encoder.
        """
        model_dir, encoder = find_model_dir(path)
        self._preprocessor = tf.saved_model.load(str(model_dir / "preprocessor"))
        self._runtime = open_runtime(encoder)
        packed = self._preprocessor(tf.constant([""]))
        self.sequence_length = packed["input_word_ids"].shape[1]
        self.dim = self._runtime.run(packed).shape[1]

    def count_weights(self) -> int | None:
        """Returns the number of the encoder's weights, None if its format does not tell."""
        return self._runtime.count_weights()

    def _tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._preprocessor.tokenize(texts).merge_dims(1, 2)

    def _embed(self, tokens: tf.RaggedTensor, length: int) -> np.ndarray:
        packed = self._preprocessor.bert_pack_inputs([tokens], seq_length=tf.constant(length))
        return self._runtime.run(packed)
