"""The options of both filter jobs, and the outputs of a step that drops records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import apache_beam as beam

from beam_pipelines.records import Record
from beam_pipelines.reporting import draw_examples
from labse_tf.errors import InputError

SOURCE, TARGET, EITHER = "source", "target", "either"
SIDES = (SOURCE, TARGET, EITHER)


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Options of the filter jobs that do not depend on the built-in filters.

    Attributes:
      filters: user-defined filters, each as `module:attribute` or `module:attribute=threshold`.
      unique_side: of pairs, one of SIDES: keep only `pairs_per_side` of the pairs that share this
        side. None keeps them all.
      pairs_per_side: 1 or more.
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

    filters: Sequence[str] = ()
    unique_side: str | None = None
    pairs_per_side: int = 1
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
        """Raises InputError for a value out of range, or contradictory options."""
        if self.unique_side is not None and self.unique_side not in SIDES:
            problem = f"--unique-side is '{self.unique_side}'"
            raise InputError(problem, remedy=f"give one of: {', '.join(SIDES)}")
        for name, number, least in (
            ("--pairs-per-side", self.pairs_per_side, 1),
            ("--shard-megabytes", self.megabytes_per_shard, 1),
            ("--max-per-language", self.max_per_language, 1),
            ("--max-bad-records", self.max_bad_records, 0),
            ("--examples", self.examples, 0),
            ("--seed", self.seed, 0),
        ):
            if number is not None and number < least:
                raise InputError(f"{name} is {number}", remedy=f"give {least} or more")
        if self.normalize and self.from_scores:
            raise InputError(
                "--normalize with --from-scores: these texts have been scored",
                remedy="filter the corpus again",
            )
        if self.scores and self.from_scores:
            raise InputError(
                "--scores with --from-scores would copy the scores", remedy="leave one of them out"
            )

    def report_dropped(
        self, counts: Mapping[tuple[str, str], int], dropped: Mapping[str, Sequence[Record]]
    ) -> Iterator[beam.pvalue.TaggedOutput]:
        """Yields outputs of a `drop_step`: the counts, and a sample of each reason's records."""
        for count in counts.items():
            yield beam.pvalue.TaggedOutput("counts", count)
        for reason, records in dropped.items():
            if self.examples and records:
                examples = draw_examples(reason, records, self.examples, self.seed)
                yield beam.pvalue.TaggedOutput("examples", examples)


def drop_step(function: Callable[..., Iterator], *arguments, **side_inputs) -> beam.PTransform:
    """Returns the step of a function that yields batches and outputs of `report_dropped`.

    Its outputs are (batches, counts, examples). Counts are `((language, name), number)`, where name
    is READ, KEPT or a reason for dropping; examples are those of `draw_examples`.
    """
    step = beam.FlatMap(function, *arguments, **side_inputs)
    return step.with_outputs("counts", "examples", main="batches")


def flatten_dropped(outputs: Sequence) -> tuple:
    """Returns the counts and the examples of several drop steps, each as one PCollection."""
    return (
        [output.counts for output in outputs] | "All counts" >> beam.Flatten(),
        [output.examples for output in outputs] | "All examples" >> beam.Flatten(),
    )
