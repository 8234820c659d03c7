"""Filters, deduplicates and shards translation pairs."""

from __future__ import annotations

from collections.abc import Sequence

from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.choose_filters import build_filters, take_options
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filtering.unique_sides import SIDES
from beam_pipelines.filtering.user_filters import add_user_filters
from beam_pipelines.runtime.storage import configure
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT

RANDOM, BEST = "random", "best"


def run(
    inputs: Sequence[str],
    out: str,
    *,
    unique_side: str | None = None,
    pairs_per_side: int = 1,
    max_per_language: int | None = 100_000_000,
    keep: str = RANDOM,
    filters: Sequence[str] = (),
    **options,
) -> dict:
    """Writes `out/bitext/<lang>/*.tfrecord.gz` and `out/report.json`; returns the report.

    Args:
      inputs: files, folders or globs.
      out: the folder to write.
      unique_side: "source", "target" or "either": keep only `pairs_per_side` of the pairs that
        share this side. None keeps them all.
      pairs_per_side: 1 or more.
      max_per_language: the maximum number of pairs to keep per language; the default is LaBSE's
        (section 3.1).
      keep: which pairs to keep: RANDOM ones, or the BEST by contrastive data selection.
      filters: user-defined filters, each as `module:attribute` or `module:attribute=threshold`.
      options: those of the filters for BITEXT, such as `max_length_ratio` (see their files), and
        the other options of `JobOptions`.

    Raises:
      InputError: see `filter_job.run`; also for an unknown side, `pairs_per_side` below 1, a
        filter that cannot be built, or BEST without `min_cds_score` or with `unique_side`.
    """
    if unique_side is not None and unique_side not in SIDES:
        raise InputError(
            f"--unique-side is '{unique_side}'", remedy=f"give one of: {', '.join(SIDES)}"
        )
    if pairs_per_side < 1:
        raise InputError(f"--pairs-per-side is {pairs_per_side}", remedy="give 1 or more")
    configure(options.get("beam_options", ()))
    values = take_options(BITEXT, options)
    built = build_filters(BITEXT, values, from_scores=options.get("from_scores", False))
    best_by = None
    if keep == BEST:
        best_by = next((one.name for one in built if getattr(one, "ranks", False)), None)
    job_options = JobOptions(max_per_language=max_per_language, best_by=best_by, **options)
    if keep == BEST and best_by is None:
        raise InputError("--keep best needs scores", remedy="add --min-cds-score and --cds")
    if best_by and unique_side:
        raise InputError(
            "--keep best and --unique-side exclude each other",
            remedy="filter by side first, then filter the result by score",
        )
    return filter_job.run(
        inputs,
        out,
        kind=BITEXT,
        filters=add_user_filters(built, filters),
        options=job_options,
        unique_side=unique_side,
        pairs_per_side=pairs_per_side,
    )
