"""The job of `filter_monolingual` and `filter_bitext`: read, filter, deduplicate, shard, report."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import apache_beam as beam

from beam_pipelines.filtering.apply_filters import ApplyFilters
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filtering.learning import learn
from beam_pipelines.filtering.make_sentences import MakeSentences
from beam_pipelines.filtering.prepare_text import TextSettings
from beam_pipelines.filtering.scores import ScoreBatches, WriteScores
from beam_pipelines.filtering.shards import MeasureShards, WriteShards, plan_shards
from beam_pipelines.filtering.unique_sides import DUPLICATE_SIDE, UniqueSides, plan_parts
from beam_pipelines.filters import AnyFilter
from beam_pipelines.reading.find import (
    ReadScores,
    find_files,
    find_scores,
    plan_score_shards,
)
from beam_pipelines.reading.readers import ReadTolerantly
from beam_pipelines.records.records import record_type_of
from beam_pipelines.reporting.report import (
    KEPT,
    READ,
    WriteExamples,
    WriteReport,
    check_bad_records,
    count_bad,
    list_faults,
    list_reasons,
)
from beam_pipelines.runtime.engine import Engine, run_pipeline
from beam_pipelines.runtime.shuffle import HoldBatches
from beam_pipelines.runtime.storage import (
    REPORT,
    TEMPORARY,
    absolute,
    check_free_folder,
    job_folder,
    join,
    read_json,
    write_json,
)
from labse_tf.files.corpus_files import (
    ALL_FORMATS,
    PAGE_FORMATS,
    SCORES,
    CorpusFile,
)
from labse_tf.files.outputs import check_apart
from labse_tf.languages import is_code

_log = logging.getLogger("labse")

EXAMPLES = "examples.md"


class FilterCorpus(beam.PTransform):
    """Corpus files of one kind -> `FOLDER/KIND/<lang>/*.tfrecord.gz`.

    Depending on the options, also `FOLDER/examples.md` and `FOLDER/scores`. The report is in
    `FOLDER/temporary`: where it finally is, it says that all else is complete.
    """

    def __init__(
        self,
        files: Sequence[CorpusFile],
        filters: Sequence[AnyFilter],
        folder: str,
        kind: str,
        options: JobOptions,
        engine: Engine,
        unique_side: str | None = None,
        pairs_per_side: int = 1,
        text_settings: TextSettings | None = None,
    ) -> None:
        super().__init__()
        self._shuffle = engine.shuffle_folder(join(folder, TEMPORARY))
        self._files = files
        self._filters = list(filters)
        self._folder = folder
        self._kind = kind
        self._record_type = record_type_of(kind, ())
        self._options = options
        self._unique_side = unique_side
        self._pairs_per_side = pairs_per_side
        self._steps = [DUPLICATE_SIDE] if unique_side else []
        self._make_sentences = None
        if text_settings is not None:
            self._make_sentences = MakeSentences(text_settings, self._shuffle, options)

    def expand(self, begin):
        batches, bad = self._read(begin)
        early, limits = [], list(self._filters)
        if self._make_sentences is not None:
            batches, *made = batches | "Make sentences" >> self._make_sentences
            early, limits = [made], [*self._make_sentences.limits, *limits]
        shards, languages = self._plan(batches)
        learned = self._learn(begin, batches)
        if isinstance(shards, beam.pvalue.AsDict) or (learned and self._make_sentences):
            batches = batches | "Hold" >> HoldBatches(self._shuffle, self._record_type)
        options = self._options
        if options.scores:
            batches = batches | "Score" >> ScoreBatches(self._filters, learned)
            write_scores = WriteScores(
                self._path(SCORES), shards, self._filters, self._record_type, self._shuffle
            )
            batches | "Write scores" >> write_scores
            learned = {}
        apply_filters = ApplyFilters(self._filters, learned, options)
        kept, *filtered = batches | "Filter" >> apply_filters
        dropped = [*early, filtered]
        if self._unique_side is not None:
            parts, most = plan_parts(self._files), self._pairs_per_side
            unique = UniqueSides(self._unique_side, parts, self._shuffle, most, options)
            kept, *by_side = kept | unique
            dropped.append(by_side)
        written = kept | "Write" >> WriteShards(
            self._path(self._kind), shards, self._record_type, options, self._shuffle
        )
        counts, examples = zip(*dropped, written, strict=True)
        if options.examples:
            self._write_examples(examples, limits)
        counts = (*counts, bad | "Count bad" >> beam.FlatMap(count_bad))
        counts = counts | "Counts" >> beam.Flatten()
        faults = bad | "Faults" >> beam.Map(list_faults)
        report = WriteReport(
            self._path(TEMPORARY, REPORT), languages, limits, list_reasons(limits, *self._steps)
        )
        return (counts, faults) | "Report" >> report

    def _path(self, *names: str) -> str:
        return join(self._folder, *names)

    def _read(self, begin):
        if not self._options.from_scores:
            return begin | "Read" >> self._reader()
        names = [filter_.name for filter_ in self._filters]
        batches = begin | "Read" >> ReadScores(self._files, names, self._record_type)
        return batches, begin | "No bad records" >> beam.Create([])

    def _reader(self) -> beam.PTransform:
        options = self._options
        return ReadTolerantly(self._files, options.max_bad_records, normalize=options.normalize)

    def _learn(self, begin, batches):
        """Returns what filters learn from the whole corpus before any record is filtered.

        The files are read twice: what waited for the end of learning would be in memory. Pages
        take longer to read, and are held anyway.
        """
        if self._options.from_scores or not any(hasattr(one, "learn") for one in self._filters):
            return {}
        if self._make_sentences is None:
            batches, _ = begin | "Read to learn" >> self._reader()
        return learn(batches, self._filters)

    def _plan(self, batches):
        """Returns language -> number of shards, and the languages known before the job runs."""
        megabytes = self._options.megabytes_per_shard
        if self._options.from_scores:
            shards = plan_score_shards(self._files)
        elif any(file.tells_language for file in self._files):
            return beam.pvalue.AsDict(batches | MeasureShards(megabytes)), []
        else:
            shards = plan_shards(self._files, megabytes)
        return shards, [language for language in shards if is_code(language)]

    def _write_examples(self, examples, limits) -> None:
        path, reasons = self._path(EXAMPLES), list_reasons(limits, *self._steps)
        write = WriteExamples(path, reasons, self._record_type, self._options.examples)
        examples | "Examples" >> beam.Flatten() | "Write examples" >> write


def run(
    inputs: Sequence[str],
    out: str,
    *,
    kind: str,
    filters: Sequence[AnyFilter],
    options: JobOptions,
    text_settings: TextSettings | None = None,
    unique_side: str | None = None,
    pairs_per_side: int = 1,
) -> dict:
    """Filters the corpus files of one kind in `inputs` into the folder `out`; returns the report.

    `text_settings` say how pages and lines become sentences; None, as for bitext: they do not. If
    `unique_side` is not None, only `pairs_per_side` of the pairs that share this side are kept.

    Raises:
      InputError: for inputs that are missing, more bad records than the options allow, an `out`
        that exists, or an option out of range. Then nothing is written.
    """
    options.check()
    engine = Engine(options.beam_options)
    models = [filter_.model_path for filter_ in filters if hasattr(filter_, "model_path")]
    engine.check_paths([*inputs, out, *models])
    check_apart(out, [*inputs, *models], overwrite=options.overwrite)
    out = check_free_folder(out, overwrite=options.overwrite)
    files = _find_files(inputs, kind, options, with_pages=text_settings is not None)
    paths = [path for file in files for path in file.paths]
    _log.info("filtering %d files of %s", len(files), kind)
    with job_folder(out, REPORT, overwrite=options.overwrite) as folder:
        job = FilterCorpus(
            [file.moved(absolute) for file in files],
            filters,
            folder,
            kind,
            options,
            engine,
            text_settings=text_settings,
            unique_side=unique_side,
            pairs_per_side=pairs_per_side,
        )
        run_pipeline(job, paths, engine)
        report = read_json(join(folder, TEMPORARY, REPORT))
        check_bad_records(report, options.max_bad_records)
        report |= {"normalize": options.normalize} if options.normalize else {}
        write_json(join(folder, REPORT), report)
    _log_summary(report, out)
    return report


def _find_files(
    inputs: Sequence[str], kind: str, options: JobOptions, *, with_pages: bool
) -> list[CorpusFile]:
    if options.from_scores:
        return find_scores(inputs)
    formats = (*ALL_FORMATS, *PAGE_FORMATS) if with_pages else ALL_FORMATS
    return find_files(inputs, kind=kind, formats=formats)


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
