"""The step before the filters: pages and paragraphs become the sentences that these see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apache_beam as beam

from beam_pipelines.duplicate_spans import (
    DUPLICATE_SPAN,
    SENTENCES_PER_SPAN,
    RemoveDuplicateSpans,
)
from beam_pipelines.prepare_text import C4_FILTERS, UNCERTAIN_LANGUAGE, PrepareText, TextSettings
from labse_tf.corpus_files import PAGE_FORMATS, CorpusFile


class Limit(NamedTuple):
    """A reason to drop sentences before the filters, as `report.json` shows those of filters."""

    name: str
    threshold: float


class MakeSentences(beam.PTransform):
    """PCollection of `Batch` -> (batches of sentences, counts); see `PrepareText`.

    Attributes:
      limits: what sentences may be dropped for.
    """

    def __init__(self, settings: TextSettings) -> None:
        super().__init__()
        self._settings = settings
        self.limits = [
            Limit(UNCERTAIN_LANGUAGE, settings.min_language_confidence),
            *(Limit(filter_.name, filter_.threshold) for filter_ in C4_FILTERS),
            Limit(DUPLICATE_SPAN, SENTENCES_PER_SPAN),
        ]

    def expand(self, batches):
        lines, passages, dropped = batches | "Prepare" >> PrepareText(self._settings)
        left, repeated = passages | "Deduplicate spans" >> RemoveDuplicateSpans()
        counts = (dropped, repeated) | "Counts" >> beam.Flatten()
        return (lines, left) | "Batches" >> beam.Flatten(), counts


def plan_sentences(files: Sequence[CorpusFile], settings: TextSettings) -> MakeSentences | None:
    """Returns the step that these files need, or None where the lines are the sentences."""
    if settings.concerns_lines or any(file.format in PAGE_FORMATS for file in files):
        return MakeSentences(settings)
    return None
