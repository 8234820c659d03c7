"""Embedding as a step of a pipeline: RunInference over batches of sentences."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.ml.inference.base import ModelHandler, RunInference

import labse_tf
from beam_pipelines.records.records import NumberedBatch
from beam_pipelines.runtime.errors import input_errors_marked
from labse_tf.progress import Progress

_LINE_BREAKS = re.compile(r"[\r\n]+")

# Of the process that shows it; workers that are processes of their own have none.
_progress: Progress | None = None


class EmbeddedBatch(NamedTuple):
    """Some sentences of one language and their vectors.

    Attributes:
      language: one of the paper's.
      file: as for `NumberedBatch`.
      first: likewise.
      texts: n texts, none with a line break.
      vectors: `[n, dim]`, rows of unit length.
      cut: how many of the texts are longer than the model reads.
    """

    language: str
    file: int
    first: int
    texts: list[str]
    vectors: np.ndarray
    cut: int


class EmbedBatches(beam.PTransform):
    """PCollection of `NumberedBatch` of sentences -> PCollection of `EmbeddedBatch`.

    Args:
      model: as `labse_tf.load` takes it, on all workers.
      dtype: of the vectors, "float16" or "float32".
      share_model: one process of a machine loads the model and embeds for the others, which read
        and write; else each process loads its own.
    """

    def __init__(self, model: str, dtype: str, *, share_model: bool) -> None:
        super().__init__()
        self._handler = _EmbedderHandler(model, dtype, share_model)

    def expand(self, batches):
        return batches | "Infer" >> RunInference(self._handler)


@contextlib.contextmanager
def progress_shown() -> Iterator[None]:
    """While a pipeline runs in this process, its sentences are counted on stderr."""
    global _progress
    with Progress("embed", unit="sentence") as _progress:
        try:
            yield
        finally:
            _progress = None


class _EmbedderHandler(ModelHandler):
    """Our batch is RunInference's example: batching again would only take them apart."""

    def __init__(self, model: str, dtype: str, share_model: bool) -> None:
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._path = model
        self._dtype = dtype
        self._share_model = share_model

    def share_model_across_processes(self) -> bool:
        return self._share_model

    def load_model(self) -> _SentenceEmbedder:
        # RunInference calls this in its DoFn's setup(), once a process or once a machine.
        with input_errors_marked():
            return _SentenceEmbedder(self._path)

    def run_inference(
        self,
        batch: Sequence[NumberedBatch],
        model: _SentenceEmbedder,
        inference_args: dict[str, Any] | None = None,
    ) -> Iterator[EmbeddedBatch]:
        for language, records, file, first in batch:
            texts = [_LINE_BREAKS.sub(" ", record.text) for record in records]
            vectors, cut = model.embed(texts)
            yield EmbeddedBatch(language, file, first, texts, vectors.astype(self._dtype), cut)
            if _progress is not None:
                _progress.update(len(texts))


class _SentenceEmbedder:
    """A loaded model with one method, as other processes can only call methods of it."""

    def __init__(self, model: str) -> None:
        # TensorFlow is imported here.
        self._model = labse_tf.load(model)
        self._lock = threading.Lock()

    def embed(self, texts: list[str]) -> tuple[np.ndarray, int]:
        """Returns float32 `[len(texts), dim]` and how many texts were cut."""
        # One batch takes all cores; and the model counts what it cuts for all callers together.
        with self._lock:
            before = self._model.texts_cut
            vectors = self._model.encode(texts)
            return vectors, self._model.texts_cut - before
