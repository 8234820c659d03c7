"""Embedding as a pipeline step: RunInference over batches of sentences."""

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
from beam_pipelines.runtime.storage import local_copy
from labse_tf.progress import Progress

_LINE_BREAKS = re.compile(r"[\r\n]+")

# Set only in the process that shows it, not in worker processes.
_progress: Progress | None = None


class EmbeddedBatch(NamedTuple):
    """Sentences of one language and their vectors.

    Attributes:
      language: one of the paper's.
      file: as for `NumberedBatch`.
      first: as for `NumberedBatch`.
      texts: n texts without line breaks.
      vectors: `[n, dim]`, rows of unit length.
      cut: how many of the texts are longer than the model's maximum length.
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
      model: as for `labse_tf.load`, on all workers, or a model dir in a store.
      dtype: of the vectors, "float16" or "float32".
      share_model: one process per machine loads the model and embeds for the others, which read
        and write; otherwise each process loads its own.
    """

    def __init__(self, model: str, dtype: str, *, share_model: bool) -> None:
        super().__init__()
        self._handler = _EmbedderHandler(model, dtype, share_model)

    def expand(self, batches):
        return batches | "Infer" >> RunInference(self._handler)


@contextlib.contextmanager
def progress_shown() -> Iterator[None]:
    """Shows the number of embedded sentences on stderr while a pipeline runs in this process."""
    global _progress
    with Progress("embed", unit="sentence") as _progress:
        try:
            yield
        finally:
            _progress = None


class _EmbedderHandler(ModelHandler):
    """Treats one of our batches as one example of RunInference, so that it does not batch again."""

    def __init__(self, model: str, dtype: str, share_model: bool) -> None:
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._path = model
        self._dtype = dtype
        self._share_model = share_model

    def share_model_across_processes(self) -> bool:
        return self._share_model

    def load_model(self) -> _SentenceEmbedder:
        # RunInference calls this in its DoFn's setup(), once per process or once per machine.
        with input_errors_marked():
            return _SentenceEmbedder(local_copy(self._path))

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
    """A loaded model behind one method, because other processes can only call its methods."""

    def __init__(self, model: str) -> None:
        # This imports TensorFlow.
        self._model = labse_tf.load(model)
        self._lock = threading.Lock()

    def embed(self, texts: list[str]) -> tuple[np.ndarray, int]:
        """Returns float32 `[len(texts), dim]` and how many texts were cut."""
        # One batch uses all cores, and `texts_cut` is one counter for all callers.
        with self._lock:
            before = self._model.texts_cut
            vectors = self._model.encode(texts)
            return vectors, self._model.texts_cut - before
