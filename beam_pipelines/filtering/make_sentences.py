"""The step before the filters, which splits pages and paragraphs into sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apache_beam as beam

from beam_pipelines.filtering.duplicate_spans import (
    DUPLICATE_SPAN,
    SENTENCES_PER_SPAN,
    RemoveDuplicateSpans,
)
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filtering.prepare_text import (
    MISSING_TEXT,
    UNCERTAIN_LANGUAGE,
    PrepareText,
    TextSettings,
)
from labse_tf.files.corpus_files import PAGE_FORMATS, CorpusFile


class Limit(NamedTuple):
    """A reason to drop sentences before the job's filters, listed with theirs in `report.json`."""

    name: str
    threshold: float


class MakeSentences(beam.PTransform):
    """PCollection of `Batch` -> (batches of sentences, counts, examples); see `PrepareText`.

    Args:
      temporary: a folder for files, or None; see `shuffle`.

    Attributes:
      limits: the reasons for which sentences may be dropped.
    """

    def __init__(self, settings: TextSettings, temporary: str | None, options: JobOptions) -> None:
        super().__init__()
        self._prepare = PrepareText(settings, options)
        self._remove = RemoveDuplicateSpans(temporary, options)
        filters = (
            *settings.page_filters,
            *settings.line_filters,
            *settings.rest_filters,
            *settings.length_filters,
        )
        self.limits = [
            Limit(UNCERTAIN_LANGUAGE, settings.min_language_confidence),
            Limit(MISSING_TEXT, 0),
            *(Limit(filter_.name, filter_.threshold) for filter_ in filters),
            Limit(DUPLICATE_SPAN, SENTENCES_PER_SPAN),
        ]

    def expand(self, batches):
        lines, passages, dropped, drawn = batches | "Prepare" >> self._prepare
        left, repeated, more_drawn = passages | "Deduplicate spans" >> self._remove
        counts = (dropped, repeated) | "Counts" >> beam.Flatten()
        examples = (drawn, more_drawn) | "Examples" >> beam.Flatten()
        return (lines, left) | "Batches" >> beam.Flatten(), counts, examples


def needs_sentences(files: Sequence[CorpusFile], settings: TextSettings) -> bool:
    """Whether these files need the step; if not, their lines are the sentences."""
    return settings.concerns_lines or any(file.format in PAGE_FORMATS for file in files)
