"""Embeds monolingual text, for mining: one vector per sentence, in shards."""

from __future__ import annotations

import contextlib
import glob
import logging
from collections.abc import Iterator, Sequence

import apache_beam as beam
import numpy as np

from beam_pipelines.embedding.batches import EmbedBatches, EmbeddedBatch, progress_shown
from beam_pipelines.embedding.vector_shards import SHARDS, WriteVectors
from beam_pipelines.reading.find import find_files
from beam_pipelines.reading.readers import ReadTolerantly
from beam_pipelines.records.records import NumberedBatch
from beam_pipelines.reporting.report import (
    BAD_RECORD,
    KEPT,
    OTHER_LANGUAGE,
    READ,
    WriteReport,
    check_bad_records,
    count_bad,
    list_faults,
)
from beam_pipelines.runtime.engine import Engine, has_worker_processes, run_pipeline
from beam_pipelines.runtime.storage import (
    REPORT,
    STORAGE,
    TEMPORARY,
    absolute,
    check_free_folder,
    job_folder,
    join,
    local_copy,
    open_file,
    read_json,
    write_json,
)
from labse_tf.embedding.model_dir import ModelDir
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import MONOLINGUAL, CorpusFile
from labse_tf.files.outputs import check_apart
from labse_tf.languages import is_code

_log = logging.getLogger("labse")

DTYPES = ("float16", "float32")
# The count of sentences that are longer than the model's maximum length.
CUT = "cut"


class EmbedCorpus(beam.PTransform):
    """Corpus files -> `FOLDER/<lang>/part-*` (see `vector_shards`) and a report.

    The report is in `FOLDER/temporary`, as that of `FilterCorpus`.
    """

    def __init__(
        self,
        files: Sequence[CorpusFile],
        folder: str,
        embed: EmbedBatches,
        shuffle_folder: str | None,
        *,
        dtype: str,
        sentences_per_shard: int,
        max_bad_records: int,
    ) -> None:
        super().__init__()
        self._read = ReadTolerantly(files, max_bad_records, numbered=True)
        self._embed = embed
        self._write = WriteVectors(folder, dtype, sentences_per_shard, shuffle_folder)
        languages = [file.language for file in files if file.language is not None]
        self._report = WriteReport(
            join(folder, TEMPORARY, REPORT),
            languages,
            filters=(),
            reasons=(BAD_RECORD, OTHER_LANGUAGE),
            facts=(CUT, SHARDS),
        )

    def expand(self, begin):
        batches, bad = begin | "Read" >> self._read
        embedded = (
            batches
            | "Known" >> beam.Filter(lambda batch: is_code(batch.language))
            | "Embed" >> self._embed
        )
        counts = (
            batches | "Count read" >> beam.FlatMap(_count_read),
            bad | "Count bad" >> beam.FlatMap(count_bad),
            embedded | "Count embedded" >> beam.FlatMap(_count_embedded),
            embedded | "Write" >> self._write,
        ) | "Counts" >> beam.Flatten()
        faults = bad | "Faults" >> beam.Map(list_faults)
        return (counts, faults) | "Report" >> self._report


def _count_read(batch: NumberedBatch) -> Iterator:
    yield (batch.language, READ), len(batch.records)
    if not is_code(batch.language):
        yield (batch.language, OTHER_LANGUAGE), len(batch.records)


def _count_embedded(batch: EmbeddedBatch) -> Iterator:
    yield (batch.language, KEPT), len(batch.texts)
    yield (batch.language, CUT), batch.cut


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
      out: the folder to write.
      model: as for `labse_tf.load`, or a model dir in a store.
      dtype: of the vectors, "float16" or "float32".
      sentences_per_shard: in all shards of a language but the last.
      max_bad_records: the maximum number of unreadable records, in all files together.
      overwrite: replace an existing `out`.
      beam_options: options for Beam, as strings; if empty, the direct runner is used in this
        process, where TensorFlow uses all cores.

    Raises:
      InputError: for inputs or a model that are missing or damaged, more bad records than allowed,
        an `out` that exists, or an option out of range. Then nothing is written.
    """
    _check(dtype, sentences_per_shard, max_bad_records)
    engine = Engine(beam_options)
    engine.check_paths([*inputs, out, model])
    check_apart(out, [*inputs, model], overwrite=overwrite)
    out = check_free_folder(out, overwrite=overwrite)
    model = absolute(STORAGE.resolve(model))
    files = find_files(inputs, kind=MONOLINGUAL)
    copy = local_copy(model)
    model_dir = ModelDir.open(copy)
    facts = {
        "model": {"path": model, "sha256": model_dir.sha256()},
        "dtype": dtype,
        "sentences_per_shard": sentences_per_shard,
    }
    share_model = has_worker_processes(beam_options)
    embed = EmbedBatches(model, dtype, share_model=share_model)
    _log.info("embedding %d files", len(files))
    with job_folder(out, REPORT, overwrite=overwrite) as folder:
        job = EmbedCorpus(
            [file.moved(absolute) for file in files],
            folder,
            embed,
            engine.shuffle_folder(join(folder, TEMPORARY)),
            dtype=dtype,
            sentences_per_shard=sentences_per_shard,
            max_bad_records=max_bad_records,
        )
        with contextlib.nullcontext() if share_model else progress_shown():
            # No paths: by their size a process per core would be chosen, but TensorFlow already
            # uses all cores.
            run_pipeline(job, [], engine)
        report = _complete_report(folder, facts)
        check_bad_records(report, max_bad_records)
        write_json(join(folder, REPORT), report)
    _log_summary(report, out)
    return report


def _check(dtype: str, sentences_per_shard: int, max_bad_records: int) -> None:
    if dtype not in DTYPES:
        raise InputError(f"--dtype is {dtype}", remedy=f"give one of {', '.join(DTYPES)}")
    for name, number, least in (
        ("--shard-sentences", sentences_per_shard, 1),
        ("--max-bad-records", max_bad_records, 0),
    ):
        if number < least:
            raise InputError(f"{name} is {number}", remedy=f"give a number of at least {least}")


def _complete_report(folder: str, facts: dict) -> dict:
    """Returns the pipeline's counts with the facts common to all vectors."""
    counted = read_json(join(folder, TEMPORARY, REPORT))
    first = next(iter(STORAGE.glob(join(glob.escape(folder), "*", "*.npy"))), None)
    return {
        "total": counted["total"],
        "languages": counted["languages"],
        "bad_records": counted["bad_records"],
        "dimension": None if first is None else _dimension(first),
        **facts,
    }


def _dimension(path: str) -> int:
    with open_file(path) as stream:
        np.lib.format.read_magic(stream)
        shape, _, _ = np.lib.format.read_array_header_1_0(stream)
    return shape[1]


def _log_summary(report: dict, out: str) -> None:
    total = report["total"]
    _log.info(
        "%s: embedded %d of %d sentences in %d languages, %d of them cut; %d shards",
        out,
        total[KEPT],
        total[READ],
        len(report["languages"]),
        total[CUT],
        total[SHARDS],
    )
