"""What `filter_monolingual` and `filter_bitext` share: read, filter, deduplicate, shard, report."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence

import apache_beam as beam

from beam_pipelines.apply_filters import ApplyFilters
from beam_pipelines.filters import Filter
from beam_pipelines.make_sentences import MakeSentences, plan_sentences
from beam_pipelines.prepare_text import TextSettings
from beam_pipelines.readers import ReadCorpus
from beam_pipelines.report import KEPT, READ, WriteReport
from beam_pipelines.runners import run_pipeline
from beam_pipelines.writers import MeasureShards, WriteShards, plan_shards
from labse_tf.corpus_files import ALL_FORMATS, PAGE_FORMATS, CorpusFile, find_corpus_files
from labse_tf.errors import InputError
from labse_tf.outputs import check_free, whole_dir

_log = logging.getLogger("labse")


class FilterCorpus(beam.PTransform):
    """Corpus files of one kind -> `FOLDER/KIND/<lang>/*.tfrecord.gz` and `FOLDER/report.json`."""

    def __init__(
        self,
        files: Sequence[CorpusFile],
        filters: Sequence[Filter],
        folder: str,
        megabytes_per_shard: int,
        make_sentences: MakeSentences | None = None,
    ) -> None:
        super().__init__()
        self._files = files
        self._filters = filters
        self._folder = folder
        self._megabytes_per_shard = megabytes_per_shard
        self._make_sentences = make_sentences

    def expand(self, begin):
        kind = self._files[0].kind
        batches = begin | "Read" >> ReadCorpus(self._files)
        counts, limits = [], []
        if self._make_sentences is not None:
            batches, made = batches | "Make sentences" >> self._make_sentences
            counts, limits = [made], self._make_sentences.limits
        kept, filtered = batches | "Filter" >> ApplyFilters(self._filters)
        if any(file.tells_language for file in self._files):
            languages = []
            shards = beam.pvalue.AsDict(kept | MeasureShards(self._megabytes_per_shard))
        else:
            shards = plan_shards(self._files, self._megabytes_per_shard)
            languages = list(shards)
        written = kept | "Write" >> WriteShards(os.path.join(self._folder, kind), shards)
        report = WriteReport(
            os.path.join(self._folder, "report.json"), languages, [*limits, *self._filters]
        )
        return (*counts, filtered, written) | beam.Flatten() | "Report" >> report


def run(
    inputs: Sequence[str],
    out: str,
    *,
    kind: str,
    filters: Sequence[Filter],
    megabytes_per_shard: int,
    overwrite: bool,
    beam_options: Sequence[str],
    text_settings: TextSettings | None = None,
) -> dict:
    """Filters the corpus files of one kind in `inputs` into the folder `out`; returns the report.

    `text_settings` say how pages and lines become sentences; None, as for bitext: not at all.

    Raises:
      InputError: for inputs that are not there or damaged, an `out` that is taken, or a shard size
        below 1. Then nothing is written.
    """
    if megabytes_per_shard < 1:
        raise InputError(
            f"--shard-megabytes is {megabytes_per_shard}", remedy="give a number of at least 1"
        )
    check_free(out, overwrite=overwrite)
    formats = ALL_FORMATS if text_settings is None else (*ALL_FORMATS, *PAGE_FORMATS)
    files = find_corpus_files(inputs, kind=kind, formats=formats)
    make_sentences = None if text_settings is None else plan_sentences(files, text_settings)
    _log.info("filtering %d files of %s", len(files), kind)
    with whole_dir(out, overwrite=overwrite) as folder:
        job = FilterCorpus(
            files, filters, os.path.abspath(folder), megabytes_per_shard, make_sentences
        )
        run_pipeline(job, [path for file in files for path in file.paths], beam_options)
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    _log_summary(report, out)
    return report


def _log_summary(report: dict, out: str) -> None:
    total = report["total"]
    dropped = ", ".join(f"{name} {number}" for name, number in total["dropped"].items() if number)
    _log.info(
        "%s: kept %d of %d records in %d languages; dropped: %s",
        out,
        total[KEPT],
        total[READ],
        len(report["languages"]),
        dropped or "none",
    )
