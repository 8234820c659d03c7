"""Embeds monolingual text, for mining: one vector per sentence, in shards.

`DIR/<lang>/part-?????-of-?????.npy` holds the vectors, `.txt.gz` beside it the sentences. The
sentences of a language are numbered across all its files, in the order of the files, and each shard
holds the next `sentences_per_shard` of them. So row i of an array is the vector of line i of the
text beside it, and the shards in sequence have the order of the input.
"""

from __future__ import annotations

import contextlib
import gzip
import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.ml.inference.base import ModelHandler, RunInference

import labse_tf
from beam_pipelines.reading.find import find_files
from beam_pipelines.reading.readers import ReadTolerantly
from beam_pipelines.records import NumberedBatch
from beam_pipelines.reporting import (
    BAD_RECORD,
    KEPT,
    OTHER_LANGUAGE,
    READ,
    WriteReport,
    check_bad_records,
)
from beam_pipelines.runtime.engine import Engine, has_worker_processes, run_pipeline
from beam_pipelines.runtime.errors import input_errors_marked
from beam_pipelines.runtime.shuffle import PackValues, Parcel, unpack_values
from beam_pipelines.runtime.storage import (
    REPORT,
    STORAGE,
    TEMPORARY,
    absolute,
    check_free_path,
    create_file,
    job_folder,
    join,
    local_copy,
    read_json,
    write_json,
)
from labse_tf.embedding.model_dir import ModelDir
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import MONOLINGUAL, CorpusFile
from labse_tf.files.outputs import check_apart
from labse_tf.languages import is_code
from labse_tf.progress import Progress

_log = logging.getLogger("labse")
_LINE_BREAKS = re.compile(r"[\r\n]+")

DTYPES = ("float16", "float32")
# Counts of a language beside those of all jobs: sentences that are longer than the model's maximum
# length, and shards.
CUT, SHARDS = "cut", "shards"

# Shows the number of embedded sentences; None in worker processes.
_progress: Progress | None = None


def run(
    inputs: Sequence[str],
    out: str,
    *,
    model: str,
    dtype: str = "float16",
    sentences_per_shard: int = 250_000,
    max_bad_records: int = 0,
    overwrite: bool = False,
    beam_options: Sequence[str] = (),
) -> dict:
    """Writes the vectors and sentences of `inputs` into the folder `out`; returns the report.

    Args:
      inputs: files, folders or globs of monolingual text.
      model: as for `labse_tf.load`, or a model dir in a store.
      dtype: of the vectors, one of DTYPES.
      sentences_per_shard: in all shards of a language but the last.
      max_bad_records: the maximum number of unreadable records, in all files together.
      beam_options: options for Beam, as strings; if empty, the direct runner is used in this
        process, where TensorFlow uses all cores.

    Raises:
      InputError: for inputs or a model that are missing or damaged, more bad records than allowed,
        an `out` that exists, or an option out of range. Then nothing is written.
    """
    global _progress
    if dtype not in DTYPES:
        raise InputError(f"--dtype is {dtype}", remedy=f"give one of {', '.join(DTYPES)}")
    if sentences_per_shard < 1:
        raise InputError(f"--shard-sentences is {sentences_per_shard}", remedy="give 1 or more")
    if max_bad_records < 0:
        raise InputError(f"--max-bad-records is {max_bad_records}", remedy="give 0 or more")
    engine = Engine(beam_options)
    engine.check_paths([*inputs, out, model])
    check_apart(out, [*inputs, model], overwrite=overwrite)
    out = check_free_path(out, overwrite=overwrite, is_folder=True)
    model = absolute(STORAGE.resolve(model))
    files = find_files(inputs, kind=MONOLINGUAL)
    sha256 = ModelDir.open(local_copy(model)).sha256()
    share_model = has_worker_processes(beam_options)
    _log.info("embedding %d files", len(files))
    with job_folder(out, REPORT, overwrite=overwrite) as folder:
        shuffle = engine.shuffle_folder(join(folder, TEMPORARY))
        moved = [file.moved(absolute) for file in files]
        embedder = _Embedder(model, dtype, share_model)
        write = WriteVectors(folder, dtype, sentences_per_shard, shuffle)
        job = EmbedCorpus(folder, moved, max_bad_records, embedder, write)
        shown = contextlib.nullcontext() if share_model else Progress("embed", unit="sentence")
        with shown as _progress:
            # No paths: by their size a process per core would be chosen, but TensorFlow already
            # uses all cores.
            run_pipeline(job, [], engine)
        counted = read_json(join(folder, TEMPORARY, REPORT))
        report = {name: counted[name] for name in ("total", "languages", "bad_records")}
        report |= {"model": {"path": model, "sha256": sha256}, "dtype": dtype}
        report |= {"sentences_per_shard": sentences_per_shard}
        check_bad_records(report, max_bad_records)
        write_json(join(folder, REPORT), report)
    total, languages = report["total"], len(report["languages"])
    told = "%s: embedded %d of %d sentences in %d languages, %d of them cut; %d shards"
    _log.info(told, out, total[KEPT], total[READ], languages, total[CUT], total[SHARDS])
    return report


@beam.ptransform_fn
def EmbedCorpus(
    begin,
    folder: str,
    files: Sequence[CorpusFile],
    max_bad_records: int,
    embedder: _Embedder,
    write: beam.PTransform,
):
    """Text files -> what `write` makes of their vectors, and a report in `FOLDER/temporary`."""
    batches, bad = begin | "Read" >> ReadTolerantly(files, max_bad_records, numbered=True)
    embedded = (
        batches
        | "Known" >> beam.Filter(lambda batch: is_code(batch.language))
        | "Embed" >> RunInference(embedder)
    )
    counts = (
        batches | "Count read" >> beam.FlatMap(_count_read),
        embedded | "Count embedded" >> beam.FlatMap(_count_embedded),
        embedded | "Write" >> write,
    ) | "Counts" >> beam.Flatten()
    return (counts, bad) | "Report" >> WriteReport(
        join(folder, TEMPORARY, REPORT),
        [file.language for file in files if file.language is not None],
        filters=(),
        reasons=(BAD_RECORD, OTHER_LANGUAGE),
        facts=(CUT, SHARDS),
    )


class EmbeddedBatch(NamedTuple):
    """Sentences of one language and their vectors; `file` and `first` as in `NumberedBatch`."""

    language: str
    file: int
    first: int
    texts: list[str]  # Without line breaks.
    vectors: np.ndarray  # `[len(texts), dim]`, rows of unit length.
    cut: int  # How many of the texts are longer than the model's maximum length.


def _count_read(batch: NumberedBatch) -> Iterator:
    for name in (READ,) if is_code(batch.language) else (READ, OTHER_LANGUAGE):
        yield (batch.language, name), len(batch.records)


def _count_embedded(batch: EmbeddedBatch) -> Iterator:
    yield (batch.language, KEPT), len(batch.texts)
    yield (batch.language, CUT), batch.cut


class _Embedder(ModelHandler):
    """Embeds a `NumberedBatch` of sentences: one example of RunInference, which batches no more.

    If `share_model`, one process per machine loads the model and embeds for the others, which read
    and write; otherwise each process loads its own.
    """

    def __init__(self, model: str, dtype: str, share_model: bool) -> None:
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._path, self._dtype, self._share_model = model, dtype, share_model

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


_Batch = tuple[str, int, int, int]  # language, file, number of the first sentence, sentences
_Piece = tuple[int, int, Parcel]  # number of the first sentence in its language, sentences


@beam.ptransform_fn
def WriteVectors(
    embedded, folder: str, dtype: str, sentences_per_shard: int, temporary: str | None
):
    """PCollection of `EmbeddedBatch` -> PCollection of ((language, SHARDS), 1), one per shard.

    A worker holds one batch in memory at a time. `temporary` is a folder for files, or None: see
    `shuffle`.
    """
    packed = embedded | "Encode" >> beam.Map(_encode) | "Pack" >> PackValues(temporary)
    plans = beam.pvalue.AsDict(
        packed
        | "Sizes" >> beam.MapTuple(lambda batch, _: (batch[:2], batch[3]))
        | "Sum" >> beam.CombinePerKey(sum)
        | "By language" >> beam.MapTuple(lambda key, count: (key[0], (key[1], count)))
        | "Gather files" >> beam.GroupByKey()
        | "Plan" >> beam.MapTuple(_plan)
    )
    return (
        packed
        | "Assign" >> beam.FlatMap(_assign, sentences_per_shard, plans)
        | "Gather" >> beam.GroupByKey()
        | "Write" >> beam.Map(_write_shard, folder, dtype, sentences_per_shard, plans)
    )


def _plan(language: str, files: Iterable[tuple[int, int]]) -> tuple[str, tuple[dict, int]]:
    """Returns the language; file number -> number of its first sentence; their total number."""
    starts, total = {}, 0
    for file, count in sorted(files):
        starts[file] = total
        total += count
    return language, (starts, total)


def _encode(batch: EmbeddedBatch) -> tuple[_Batch, list[bytes]]:
    key = (batch.language, batch.file, batch.first, len(batch.texts))
    return key, [batch.vectors.tobytes(), *(text.encode("utf-8") for text in batch.texts)]


def _assign(
    packed: tuple[_Batch, Parcel], size: int, plans: Mapping[str, tuple[dict[int, int], int]]
) -> Iterator[tuple[tuple[str, int], _Piece]]:
    (language, file, first, count), parcel = packed
    start = plans[language][0][file] + first
    for shard in range(start // size, (start + count - 1) // size + 1):
        yield (language, shard), (start, count, parcel)


def _write_shard(
    shard: tuple[tuple[str, int], Iterable[_Piece]],
    folder: str,
    dtype: str,
    size: int,
    plans: Mapping[str, tuple[dict[int, int], int]],
) -> tuple[tuple[str, str], int]:
    (language, number), pieces = shard
    _, total = plans[language]
    begin, end = number * size, min(total, (number + 1) * size)
    path = join(folder, language, f"part-{number:05}-of-{-(-total // size):05}")
    next_row = begin
    with (
        create_file(path + ".npy") as array,
        create_file(path + ".txt.gz") as packed,
        # No name or time in the header, so that equal sentences give equal files.
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=packed, mtime=0) as lines,
    ):
        for start, count, parcel in sorted(pieces):
            data, *texts = unpack_values(parcel)
            vectors = np.frombuffer(data, dtype).reshape(count, -1)
            if next_row == begin:
                shape = (end - begin, vectors.shape[1])
                header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(array, header)
            rows = slice(max(0, begin - start), end - start)
            array.write(vectors[rows].tobytes())
            lines.write(b"".join(text + b"\n" for text in texts[rows]))
            next_row += len(texts[rows])
    if next_row != end:
        raise RuntimeError(f"{path} has {next_row - begin} rows, not {end - begin}")
    return (language, SHARDS), 1
