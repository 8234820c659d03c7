"""Filters, deduplicates and shards monolingual text (paper section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines import filter_job
from beam_pipelines.filters.too_long import TooLong
from beam_pipelines.filters.too_short import TooShort
from beam_pipelines.job_options import JobOptions
from labse_tf.corpus_files import MONOLINGUAL


def run(
    inputs: Sequence[str],
    out: str,
    *,
    min_characters: int = 10,
    max_characters: int = 5000,
    **options,
) -> dict:
    """Writes `out/monolingual/<lang>/*.tfrecord.gz` and `out/report.json`; returns the report.

    Args:
      inputs: files, folders or globs.
      out: the folder to write.
      min_characters: shorter lines are dropped.
      max_characters: longer lines are dropped.
      options: those of `JobOptions`.

    Raises:
      InputError: see `filter_job.run`.
    """
    return filter_job.run(
        inputs,
        out,
        kind=MONOLINGUAL,
        filters=[TooShort(min_characters), TooLong(max_characters)],
        options=JobOptions(**options),
    )
