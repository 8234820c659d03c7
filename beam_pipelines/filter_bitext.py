"""Filters, deduplicates and shards translation pairs."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines import filter_job
from beam_pipelines.filters.few_letters import FewLetters
from beam_pipelines.filters.identical_sides import IdenticalSides
from beam_pipelines.filters.length_ratio import LengthRatio
from beam_pipelines.filters.too_long import TooLong
from beam_pipelines.filters.too_short import TooShort
from beam_pipelines.job_options import JobOptions
from labse_tf.corpus_files import BITEXT


def run(
    inputs: Sequence[str],
    out: str,
    *,
    min_characters: int = 2,
    max_characters: int = 5000,
    max_length_ratio: float = 9.0,
    min_letters_share: float = 0.2,
    max_per_language: int | None = 100_000_000,
    **options,
) -> dict:
    """Writes `out/bitext/<lang>/*.tfrecord.gz` and `out/report.json`; returns the report.

    Args:
      inputs: files, folders or globs.
      out: the folder to write.
      min_characters: pairs with a shorter side are dropped.
      max_characters: pairs with a longer side are dropped.
      max_length_ratio: pairs are dropped where one side has more than so many times the characters
        of the other.
      min_letters_share: pairs are dropped where less than this share (0 to 1) of a side's
        characters are letters.
      max_per_language: at most so many pairs of a language stay; the default is LaBSE's (section
        3.1).
      options: the others of `JobOptions`.

    Raises:
      InputError: see `filter_job.run`.
    """
    return filter_job.run(
        inputs,
        out,
        kind=BITEXT,
        filters=[
            TooShort(min_characters),
            TooLong(max_characters),
            LengthRatio(max_length_ratio),
            IdenticalSides(),
            FewLetters(min_letters_share),
        ],
        options=JobOptions(max_per_language=max_per_language, **options),
    )
