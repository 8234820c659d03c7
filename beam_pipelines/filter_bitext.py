"""Filters, deduplicates and shards translation pairs."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.apply_filters import JobOptions
from beam_pipelines.filtering.choose_filters import build_filters, take_options
from beam_pipelines.runtime.storage import configure
from labse_tf.errors import InputError
from labse_tf.files.record_kinds import BITEXT

RANDOM, BEST = "random", "best"


def run(
    inputs: Sequence[str],
    out: str,
    *,
    max_per_language: int | None = 100_000_000,
    keep: str = RANDOM,
    **options,
) -> dict:
    """Writes `out/bitext/<lang>/*.tfrecord.gz` and `out/report.json`; returns the report.

    Args:
      max_per_language: the maximum number of pairs to keep per language; the default is LaBSE's
        (section 3.1).
      keep: which pairs to keep: RANDOM ones, or the BEST by contrastive data selection.
      options: those of the filters for BITEXT, such as `max_length_ratio` (see their files), and
        the other options of `JobOptions`.

    Raises:
      InputError: see `filter_job.run`; also for a filter that cannot be built, or BEST without
        `min_cds_score` or with `unique_side`.
    """
    configure(options.get("beam_options", ()))
    values = take_options(BITEXT, options)
    built = build_filters(BITEXT, values, from_scores=options.get("from_scores", False))
    best_by = None
    if keep == BEST:
        best_by = next((one.name for one in built if getattr(one, "ranks", False)), None)
        if best_by is None:
            raise InputError("--keep best needs scores", remedy="add --min-cds-score and --cds")
        if options.get("unique_side"):
            problem = "--keep best and --unique-side exclude each other"
            raise InputError(problem, remedy="filter by side first, then the result by score")
    job_options = JobOptions(max_per_language=max_per_language, best_by=best_by, **options)
    return filter_job.run(inputs, out, kind=BITEXT, filters=built, options=job_options)
