"""Keeps only some of the pairs that share a side: navigation text has many "translations"."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Iterator

import apache_beam as beam

from beam_pipelines.filtering.apply_filters import EITHER, SOURCE, TARGET, JobOptions, drop_step
from beam_pipelines.reading.find import text_bytes
from beam_pipelines.reading.readers import in_batches
from beam_pipelines.records import Batch, Pair, encode_record, parse_record
from beam_pipelines.runtime.shuffle import GroupValues, Parcel, hash_of, unpack_values
from labse_tf.files.corpus_files import CorpusFile

DUPLICATE_SIDE = "duplicate_side"

# A worker holds the pairs of one part of a language in memory.
_TEXT_BYTES_PER_PART = 100_000_000


def plan_parts(files: Iterable[CorpusFile]) -> int:
    """Returns the number of parts to divide each language into, from the sizes of all files."""
    return max(1, math.ceil(sum(map(text_bytes, files)) / _TEXT_BYTES_PER_PART))


@beam.ptransform_fn
def UniqueSides(batches, parts: int, temporary: str | None, options: JobOptions):
    """PCollection of `Batch` of pairs -> (batches, list of counted); see `drop_step`.

    Sides are the same if they differ only in case and white space. Of the different pairs with the
    same side, the `options.pairs_per_side` with the smallest hashes are kept, whatever the order of
    the input; if the side is EITHER, sources come first, then targets of the remaining pairs.
    Copies of a kept pair are kept too: `WriteShards` drops duplicates.

    `parts` is from `plan_parts`; `temporary` is a folder for files, or None: see `shuffle`.
    """
    counted = []
    for side in [SOURCE, TARGET] if options.unique_side == EITHER else [options.unique_side]:
        batches, one = (
            batches
            | f"Divide by {side}" >> beam.FlatMap(_divide, side, parts)
            | f"Gather {side}" >> GroupValues(temporary)
            | f"Choose by {side}" >> drop_step(_choose, side, options)
        )
        counted.append(one)
    return batches, counted


def _divide(batch: Batch, side: str, parts: int) -> Iterator[tuple[tuple[str, int], list[bytes]]]:
    divided: dict[int, list[bytes]] = collections.defaultdict(list)
    for pair in batch.records:
        # Not `hash`, which differs between processes.
        digest = hash_of(_essence(pair, side).encode("utf-8"))
        divided[int.from_bytes(digest[:8], "big") % parts].append(encode_record(pair))
    for part, pairs in divided.items():
        yield (batch.language, part), pairs


def _choose(
    element: tuple[tuple[str, int], Iterable[Parcel]], side: str, options: JobOptions
) -> Iterator:
    pairs = [parse_record(Pair, one) for parcel in element[1] for one in unpack_values(parcel)]
    kept = choose_by_side(pairs, side, options.pairs_per_side)
    yield from in_batches(kept)
    distinct = set(kept)
    dropped = [pair for pair in pairs if pair not in distinct]
    yield from options.report_dropped({DUPLICATE_SIDE: dropped})


def choose_by_side(pairs: Iterable[Pair], side: str, most: int) -> list[Pair]:
    """Returns the pairs of a language that `UniqueSides` keeps; `side` is SOURCE or TARGET."""
    groups: dict[str, list[Pair]] = collections.defaultdict(list)
    for pair in pairs:
        groups[_essence(pair, side)].append(pair)
    kept = []
    for group in groups.values():
        distinct = set(group)
        if len(distinct) > most:
            ordered = sorted(distinct, key=lambda pair: hash_of(encode_record(pair)))
            distinct = set(ordered[:most])
        kept += [pair for pair in group if pair in distinct]
    return kept


def _essence(pair: Pair, side: str) -> str:
    return " ".join(getattr(pair, side).casefold().split())
