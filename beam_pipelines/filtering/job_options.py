"""The options that both filter jobs have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from beam_pipelines.records.records import Record
from beam_pipelines.reporting.report import draw_examples
from labse_tf.errors import InputError


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Options of both filter jobs that do not depend on the filters.

    Attributes:
      megabytes_per_shard: approximate amount of uncompressed input per shard. With `from_scores`
        there are as many shards as files of scores.
      max_per_language: the maximum number of records to keep per language, a uniform sample of
        those that the filters accept; None keeps all.
      best_by: name of a filter; then the records with its highest scores are kept instead.
      max_bad_records: the maximum number of unreadable records, in all files together.
      scores: write the scores of all filters for every record.
      from_scores: the inputs are folders of such scores.
      examples: the number of random examples to write for each reason; 0 writes none.
      seed: for the samples.
      normalize: a form of Unicode, such as "NFC", that texts are brought to before all else.
      overwrite: replace an existing output.
      beam_options: options for Beam, as strings; if empty, the direct runner is used.
    """

    megabytes_per_shard: int = 50
    max_per_language: int | None = None
    best_by: str | None = None
    max_bad_records: int = 0
    scores: bool = False
    from_scores: bool = False
    examples: int = 10
    seed: int = 0
    normalize: str | None = None
    overwrite: bool = False
    beam_options: Sequence[str] = ()

    def check(self) -> None:
        """Raises InputError for a number out of range, or contradictory options."""
        _check_least("--shard-megabytes", self.megabytes_per_shard, 1)
        if self.max_per_language is not None:
            _check_least("--max-per-language", self.max_per_language, 1)
        _check_least("--max-bad-records", self.max_bad_records, 0)
        _check_least("--examples", self.examples, 0)
        _check_least("--seed", self.seed, 0)
        if self.normalize and self.from_scores:
            raise InputError(
                "--normalize with --from-scores: these texts have been scored",
                remedy="filter the corpus again",
            )
        if self.scores and self.from_scores:
            raise InputError(
                "--scores with --from-scores would copy the scores", remedy="leave one of them out"
            )

    def draw_examples(
        self, dropped: Mapping[str, Sequence[Record]]
    ) -> Iterator[beam.pvalue.TaggedOutput]:
        """Yields outputs `examples`: a sample of the records of each reason."""
        for reason, records in dropped.items():
            if self.examples and records:
                examples = draw_examples(reason, records, self.examples, self.seed)
                yield beam.pvalue.TaggedOutput("examples", examples)


def _check_least(name: str, number: int, least: int) -> None:
    if number < least:
        raise InputError(f"{name} is {number}", remedy=f"give a number of at least {least}")
