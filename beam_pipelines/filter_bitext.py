"""Filters, deduplicates and shards translation pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from beam_pipelines.filtering import filter_job
from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.filtering.unique_sides import SIDES
from beam_pipelines.filters import Filter
from beam_pipelines.filters.cds import Contrastive
from beam_pipelines.filters.few_letters import FewLetters
from beam_pipelines.filters.identical_sides import IdenticalSides
from beam_pipelines.filters.length_ratio import LengthRatio
from beam_pipelines.filters.markup import Markup
from beam_pipelines.filters.numbers_disagree import NumbersDisagree
from beam_pipelines.filters.similar_sides import SimilarSides
from beam_pipelines.filters.too_long import TooLong
from beam_pipelines.filters.too_short import TooShort
from beam_pipelines.filters.unusual_length import UnusualLength
from beam_pipelines.filters.wrong_language import WrongLanguage
from beam_pipelines.filters.wrong_script import WrongScript
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import BITEXT
from labse_tf.training.runs.run_dir import open_existing

RANDOM, BEST = "random", "best"


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits of the filters; see the filter of each for what is counted and how.

    Attributes:
      min_characters: of the shorter side (`TooShort`).
      max_characters: of the longer side (`TooLong`).
      max_length_ratio: one side's characters to the other's (`LengthRatio`).
      max_length_deviation: in standard deviations from the language's median (`UnusualLength`).
      min_letters_share: 0 to 1 (`FewLetters`).
      max_markup_share: 0 to 1 (`Markup`).
      max_similarity: 0 to 1 (`SimilarSides`).
      min_script_share: 0 to 1 (`WrongScript`).
      min_number_agreement: 0 to 1 (`NumbersDisagree`).
      max_language_doubt: -1 to 1 (`WrongLanguage`).
    """

    min_characters: int = 2
    max_characters: int = 5000
    max_length_ratio: float = 9.0
    max_length_deviation: float = 2.75
    min_letters_share: float = 0.2
    max_markup_share: float = 0.4
    max_similarity: float = 0.6
    min_script_share: float = 0.3
    min_number_agreement: float = 0.3
    max_language_doubt: float = 0.3


def build_filters(limits: Limits) -> list[Filter]:
    """Returns the filters in the order in which they judge: the cheap ones first."""
    return [
        TooShort(limits.min_characters),
        TooLong(limits.max_characters),
        LengthRatio(limits.max_length_ratio),
        IdenticalSides(),
        FewLetters(limits.min_letters_share),
        NumbersDisagree(limits.min_number_agreement),
        Markup(limits.max_markup_share),
        WrongScript(limits.min_script_share),
        UnusualLength(limits.max_length_deviation),
        SimilarSides(limits.max_similarity),
        WrongLanguage(limits.max_language_doubt),
    ]


def run(
    inputs: Sequence[str],
    out: str,
    *,
    unique_side: str | None = None,
    pairs_per_side: int = 1,
    cds: str | None = None,
    min_cds_score: float | None = None,
    max_per_language: int | None = 100_000_000,
    keep: str = RANDOM,
    **options,
) -> dict:
    """Writes `out/bitext/<lang>/*.tfrecord.gz` and `out/report.json`; returns the report.

    Args:
      inputs: files, folders or globs.
      out: the folder to write.
      unique_side: "source", "target" or "either": of the pairs that share this side, only
        `pairs_per_side` stay. None keeps them all.
      pairs_per_side: 1 or more.
      cds: the run dir of `labse corpus train-cds`, to drop pairs by contrastive data selection too;
        all workers must see it. Scores that are read again need none.
      min_cds_score: then pairs with a lower score are dropped, see `labse corpus calibrate`.
      max_per_language: at most so many pairs of a language stay; the default is LaBSE's (section
        3.1).
      keep: which ones: RANDOM, or BEST by contrastive data selection.
      options: those of `Limits`, and the others of `JobOptions`.

    Raises:
      InputError: see `filter_job.run`; or a side that is none, or `pairs_per_side` below 1; or one
        of `cds` and `min_cds_score` without the other, or a `cds` that is no run dir; or BEST
        without `min_cds_score`, or with `unique_side`.
    """
    if unique_side is not None and unique_side not in SIDES:
        raise InputError(
            f"--unique-side is '{unique_side}'", remedy=f"give one of: {', '.join(SIDES)}"
        )
    if pairs_per_side < 1:
        raise InputError(f"--pairs-per-side is {pairs_per_side}", remedy="give 1 or more")
    names = {field.name for field in dataclasses.fields(Limits)}
    limits = Limits(**{name: options.pop(name) for name in names & options.keys()})
    best_by = Contrastive.name if keep == BEST else None
    job_options = JobOptions(max_per_language=max_per_language, best_by=best_by, **options)
    contrastive = _contrastive(cds, min_cds_score, from_scores=job_options.from_scores)
    if best_by and not contrastive:
        raise InputError(
            "--keep best has no scores to choose by", remedy="add --min-cds-score and --cds"
        )
    if best_by and unique_side:
        raise InputError(
            "--keep best and --unique-side exclude each other",
            remedy="filter by side first, and what stays by score then",
        )
    return filter_job.run(
        inputs,
        out,
        kind=BITEXT,
        filters=[*build_filters(limits), *contrastive],
        options=job_options,
        unique_side=unique_side,
        pairs_per_side=pairs_per_side,
    )


def _contrastive(
    run_dir: str | None, threshold: float | None, *, from_scores: bool
) -> list[Contrastive]:
    if run_dir is None and (threshold is None or from_scores):
        return [] if threshold is None else [Contrastive("", threshold)]
    if run_dir is None or threshold is None:
        raise InputError(
            "--cds and --min-cds-score go together",
            remedy="give both; `labse corpus calibrate` tells the score",
        )
    return [Contrastive(str(open_existing(run_dir).path.absolute()), threshold)]
