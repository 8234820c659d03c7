"""Keeps only some of the pairs that share a side: navigation text has many "translations"."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator

import apache_beam as beam

from beam_pipelines.filtering.job_options import JobOptions
from beam_pipelines.reading.find import text_bytes
from beam_pipelines.reading.readers import in_batches
from beam_pipelines.records.records import Batch, Pair, build_record, decode_example, encode_record
from beam_pipelines.runtime.shuffle import GroupValues, hash_of
from labse_tf.files.corpus_files import CorpusFile

DUPLICATE_SIDE = "duplicate_side"

SOURCE, TARGET, EITHER = "source", "target", "either"
SIDES = (SOURCE, TARGET, EITHER)

# A worker holds the pairs of one part of a language in memory.
_TEXT_BYTES_PER_PART = 100_000_000


def plan_parts(files: Iterable[CorpusFile]) -> int:
    """Returns the number of parts to divide each language into, from the sizes of all files."""
    return max(1, math.ceil(sum(map(text_bytes, files)) / _TEXT_BYTES_PER_PART))


class UniqueSides(beam.PTransform):
    """PCollection of `Batch` of pairs -> (batches, counts, examples of what was dropped).

    Counts are `((language, DUPLICATE_SIDE), number)`.

    Sides are the same if they differ only in case and white space. Of the different pairs with the
    same side, the `most` with the smallest hashes are kept, whatever the order of the input. Copies
    of a kept pair are kept too: `WriteShards` drops duplicates.

    Args:
      sides: SOURCE, TARGET, or EITHER: sources first, then targets of the remaining pairs.
      parts: see `plan_parts`.
      temporary: a folder for files, or None; see `shuffle`.
      most: how many pairs may share a side, 1 or more.
      options: those of the job.
    """

    def __init__(
        self, sides: str, parts: int, temporary: str | None, most: int, options: JobOptions
    ) -> None:
        super().__init__()
        self._temporary = temporary
        self._sides = [SOURCE, TARGET] if sides == EITHER else [sides]
        self._parts = parts
        self._most = most
        self._options = options

    def expand(self, batches):
        counts, examples = [], []
        for side in self._sides:
            outputs = (
                batches
                | f"Divide by {side}" >> beam.FlatMap(_divide, side, self._parts)
                | f"Gather {side}" >> GroupValues(self._temporary)
                | f"Choose by {side}"
                >> beam.ParDo(_Choose(side, self._most, self._options)).with_outputs(
                    "counts", "examples", main="batches"
                )
            )
            batches = outputs.batches
            counts.append(outputs.counts)
            examples.append(outputs.examples)
        return (
            batches,
            counts | "All counts" >> beam.Flatten(),
            examples | "All examples" >> beam.Flatten(),
        )


def _divide(batch: Batch, side: str, parts: int) -> Iterator[tuple[tuple[str, int], list[bytes]]]:
    divided: dict[int, list[bytes]] = collections.defaultdict(list)
    for pair in batch.records:
        # Not `hash`, which differs between processes.
        digest = hash_of(_essence(pair, side).encode("utf-8"))
        divided[int.from_bytes(digest[:8], "big") % parts].append(encode_record(pair))
    for part, pairs in divided.items():
        yield (batch.language, part), pairs


class _Choose(beam.DoFn):
    def __init__(self, side: str, most: int, options: JobOptions) -> None:
        self._side = side
        self._most = most
        self._options = options

    def process(self, element: tuple[tuple[str, int], Iterable[list[bytes]]]) -> Iterator:
        (language, _), values = element
        pairs = [
            build_record(Pair, decode_example(example), None) for part in values for example in part
        ]
        kept = choose_by_side(pairs, self._side, self._most)
        yield from in_batches(kept)
        dropped = len(pairs) - len(kept)
        yield beam.pvalue.TaggedOutput("counts", ((language, DUPLICATE_SIDE), dropped))
        gone = list(set(pairs).difference(kept))
        yield from self._options.draw_examples({DUPLICATE_SIDE: gone})


def choose_by_side(pairs: Iterable[Pair], side: str, most: int) -> list[Pair]:
    """Returns those of a language's pairs that `UniqueSides` keeps; `side` is SOURCE or TARGET."""
    groups: dict[str, list[Pair]] = collections.defaultdict(list)
    for pair in pairs:
        groups[_essence(pair, side)].append(pair)
    kept = []
    for group in groups.values():
        distinct = set(group)
        if len(distinct) > most:
            distinct = set(sorted(distinct, key=_hash)[:most])
        kept += [pair for pair in group if pair in distinct]
    return kept


def _essence(pair: Pair, side: str) -> str:
    return " ".join(getattr(pair, side).casefold().split())


def _hash(pair: Pair) -> bytes:
    return hash_of(encode_record(pair))
