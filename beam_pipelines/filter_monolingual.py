"""Filters, deduplicates and shards monolingual text (paper section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.choose_filters import build_filters, take_options
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filtering.make_sentences import needs_sentences
from beam_pipelines.filtering.prepare_text import TextSettings
from beam_pipelines.filtering.user_filters import add_user_filters
from beam_pipelines.filters import LENGTHS, LINES, PAGES, RECORDS, RESTS, AnyFilter
from beam_pipelines.filters.too_long import TooLong
from beam_pipelines.filters.too_short import TooShort
from beam_pipelines.reading.find import find_files, find_scores, have_score
from beam_pipelines.runtime.storage import configure
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import ALL_FORMATS, PAGE_FORMATS
from labse_tf.files.record_kinds import MONOLINGUAL, NEIGHBOURS

# The reasons for dropping lines before they are split, and sentences after that.
SHORT_LINE, LONG_LINE, SHORT_SENTENCE = "short_line", "long_line", "short_sentence"
_REASONS_OF_LINES = {TooShort.name: SHORT_LINE, TooLong.name: LONG_LINE}


def run(
    inputs: Sequence[str],
    out: str,
    *,
    min_sentence_characters: int | None = None,
    min_language_confidence: float = 0.5,
    split_sentences: bool | None = None,
    c4: bool | None = None,
    neighbours: bool = False,
    filters: Sequence[str] = (),
    **options,
) -> dict:
    """Writes `out/monolingual/<lang>/*.tfrecord.gz` and `out/report.json`; returns the report.

    Args:
      inputs: files, folders or globs.
      out: the folder to write.
      min_sentence_characters: if pages or lines are split into sentences, shorter sentences are
        dropped. None: 0.
      min_language_confidence: 0 to 1; lines of web pages identified with less are dropped.
      split_sentences: make each sentence a record. None: split pages, but not lines.
      c4: apply the heuristics of C4, see `prepare_text`. None: to pages, but not to lines.
      neighbours: write `out/neighbours/<lang>/*.tfrecord.gz`, records of two adjacent sentences, as
        CMLM is trained on. Lines are sentences in the order of their documents, and an empty line
        is a break, as is everything that is dropped.
      filters: user-defined filters, each as `module:attribute` or `module:attribute=threshold`.
        They see sentences, or lines if these are not split.
      options: those of the filters for MONOLINGUAL, such as `min_characters` or `identify` (see
        their files), and those of `JobOptions`.

    Raises:
      InputError: see `filter_job.run`; also for a share out of range, a damaged model, a filter
        that cannot be built, or a limit for lines or sentences if the input has none.
    """
    if not 0 <= min_language_confidence <= 1:
        raise InputError(
            f"--min-language-confidence is {min_language_confidence}",
            remedy="give a number from 0 to 1",
        )
    configure(options.get("beam_options", ()))
    kind = NEIGHBOURS if neighbours else MONOLINGUAL
    if neighbours and (split_sentences is not None or c4):
        raise InputError(
            "--neighbours takes each line of text as a sentence, and splits pages",
            remedy="leave out --split-sentences and --c4",
        )
    values = take_options(MONOLINGUAL, options)
    stages = {
        stage: build_filters(MONOLINGUAL, values, stage=stage)
        for stage in (PAGES, LINES, RESTS, LENGTHS, RECORDS)
    }
    settings = TextSettings(
        min_language_confidence=min_language_confidence,
        split_sentences=split_sentences,
        c4=c4,
        page_filters=tuple(stages[PAGES]),
        line_filters=tuple(stages[LINES]),
        rest_filters=tuple(stages[RESTS]),
        length_filters=tuple(stages[LENGTHS]),
        neighbours=neighbours,
    )
    from_scores = options.get("from_scores", False)
    lengths: list[AnyFilter]
    if _are_sentences(inputs, kind, settings, from_scores=from_scores):
        if from_scores:
            _refuse_limits_of_lines(values)
        for filter_ in stages[LENGTHS]:
            filter_.name = _REASONS_OF_LINES.get(filter_.name, filter_.name)
        lengths = [TooShort(min_sentence_characters or 0, SHORT_SENTENCE)]
    else:
        if min_sentence_characters is not None:
            raise InputError(
                "--min-sentence-characters limits sentences, but these records are lines",
                remedy="use --min-characters, or filter the corpus with --split-sentences",
            )
        lengths, settings = stages[LENGTHS], None
    return filter_job.run(
        inputs,
        out,
        kind=kind,
        filters=add_user_filters(
            [*lengths, *stages[RECORDS]],
            filters,
            taken=[filter_ for stage in stages.values() for filter_ in stage],
        ),
        options=JobOptions(**options),
        text_settings=None if from_scores else settings,
    )


def _refuse_limits_of_lines(values: Mapping[str, Any]) -> None:
    if (values.get("min_characters"), values.get("max_characters")) != (None, None):
        raise InputError(
            "--min-characters and --max-characters limit lines, but these scores are of "
            "sentences that lines were split into",
            remedy="use --min-sentence-characters, or filter the corpus again",
        )


def _are_sentences(
    inputs: Sequence[str], kind: str, settings: TextSettings, *, from_scores: bool
) -> bool:
    """Whether the job's records are sentences split from pages or lines, not the input's lines."""
    if from_scores:
        return have_score(find_scores(inputs), SHORT_SENTENCE)
    formats = (*ALL_FORMATS, *PAGE_FORMATS)
    return needs_sentences(find_files(inputs, kind=kind, formats=formats), settings)
