"""Removes exact duplicates and writes shards: `DIR/<lang>/part-?????-of-?????.tfrecord.gz`.

A record's hash determines its shard and its position in the shard. So equal records meet in one
shard, where all but one are dropped; records are in random order, as training needs; and the bytes
of a shard depend neither on the runner nor on the order of the input.

If a language has too many records, each has a number: a random number of the record, so that those
with the smallest numbers are a uniform sample, or a number that decreases as its score increases.
Records with numbers up to the N-th smallest, the cutoff, are kept. It is found exactly and without
gathering all numbers: a histogram of their upper bits gives the bin of the N-th, and only that bin
is sorted.
"""

from __future__ import annotations

import collections
import gzip
import io
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np

from beam_pipelines.filtering.apply_filters import JobOptions
from beam_pipelines.reading.find import text_bytes
from beam_pipelines.records import (
    Batch,
    Record,
    ScoredBatch,
    encode_record,
    parse_record,
    texts_of,
    write_records,
)
from beam_pipelines.reporting import (
    DUPLICATE,
    KEPT,
    OTHER_LANGUAGE,
    OVER_CAP,
    Counted,
    describe_record,
)
from beam_pipelines.runtime.shuffle import (
    GroupValues,
    Parcel,
    hash_of,
    random_number_of,
    smallest,
    unpack_all,
)
from beam_pipelines.runtime.storage import join, write_file
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import is_code

_NUMBER = struct.Struct(">Q")
# One worker sorts a bin. Of 10^9 random numbers, 15,000 share one (120 kB). Scores are denser: a
# bin holds all that differ by less than 1 part in 128.
_BIN_BITS = 16
_SHIFT = np.uint64(64 - _BIN_BITS)

_Shard = tuple[str, int]  # language, number from 0
Numbers = tuple[str, np.ndarray]  # language, [n] uint64 numbers of its records
_Bin = tuple[int, int]  # The bin's number, from 0; how many of its records are kept, 1 or more.


def plan_shards(files: Iterable[CorpusFile], megabytes_per_shard: int) -> dict[str, int]:
    """Returns the number of shards for each language, from the sizes of its files.

    The sizes of the files are known before anything is read, so the shards are planned for the
    input, not for what is kept of it. Files of several languages need `MeasureShards`.
    """
    sizes = collections.Counter()
    for file in files:
        sizes[file.language] += text_bytes(file)
    return dict(_plan_language(measured, megabytes_per_shard) for measured in sizes.items())


def _plan_language(measured: tuple[str, int], megabytes_per_shard: int) -> tuple[str, int]:
    language, size = measured
    return language, max(1, math.ceil(size / (megabytes_per_shard * 1_000_000)))


@beam.ptransform_fn
def MeasureShards(batches, megabytes_per_shard: int):
    """PCollection of `Batch` -> PCollection of (language, number of shards), from the text.

    Unsupported languages are counted as one, OTHER_LANGUAGE. This is another pass over the records,
    needed only for files whose records tell their language.
    """
    return (
        batches
        | "Measure" >> beam.Map(_measure)
        | "Sum" >> beam.CombinePerKey(sum)
        | "Divide" >> beam.Map(_plan_language, megabytes_per_shard)
    )


def _folder_of(batch: Batch | ScoredBatch) -> str:
    return batch.language if is_code(batch.language) else OTHER_LANGUAGE


def _measure(batch: Batch) -> tuple[str, int]:
    texts = (text for record in batch.records for text in texts_of(record))
    return _folder_of(batch), sum(len(text.encode("utf-8")) for text in texts)


@beam.ptransform_fn
def WriteShards(
    batches,
    folder: str,
    shards: Mapping[str, int] | beam.pvalue.AsDict,
    record_type: type[Record],
    options: JobOptions,
    temporary: str | None,
):
    """PCollection of `Batch` or `ScoredBatch` -> `Counted`: KEPT, DUPLICATE and OVER_CAP.

    A worker holds one shard in memory at a time. Languages without any remaining records get no
    shards; all others get all of their shards, even empty ones. The `folder` is for the folders of
    languages, `temporary` for files, or None: see `shuffle`. `shards` are those of `plan_shards`,
    or a side input of this, from `MeasureShards`.
    """
    assigned = batches | "Assign" >> beam.ParDo(AssignShards(_numbers_of), shards, options)
    parts = assigned | "Gather" >> GroupValues(temporary)
    cuts, maximum = {}, options.max_per_language
    if maximum is not None:
        crowded = (
            batches
            | "Count" >> beam.Map(lambda batch: (batch.language, len(batch.records)))
            | "Sum" >> beam.CombinePerKey(sum)
            | "Compare" >> beam.Filter(lambda counted: counted[1] > maximum)
        )
        numbers = parts | "Number" >> beam.FlatMap(_number_shard, beam.pvalue.AsDict(crowded))
        cuts = beam.pvalue.AsDict(numbers | "Find cuts" >> FindCuts(maximum))
    return parts | "Write" >> beam.FlatMap(_write_shard, folder, record_type, options, shards, cuts)


class AssignShards(beam.DoFn):
    """Batch -> `((folder, shard), rows)`: rows are records, each after its prefix.

    A bundle names each shard of its folders once, with no records, so that all of them exist.
    Unsupported languages share the folder OTHER_LANGUAGE. `prefixes_of` is called with a batch, its
    serialized records and an argument of the step; all prefixes have one length.
    """

    def __init__(self, prefixes_of: Callable[..., Iterable[bytes]]) -> None:
        self._prefixes_of = prefixes_of

    def start_bundle(self) -> None:
        self._named: set[str] = set()

    def process(
        self, batch: Batch | ScoredBatch, shards: Mapping[str, int], argument: object
    ) -> Iterator[tuple[_Shard, list[bytes]]]:
        folder = _folder_of(batch)
        parts: list[list[bytes]] = [[] for _ in range(shards[folder])]
        examples = list(map(encode_record, batch.records))
        prefixes = self._prefixes_of(batch, examples, argument)
        for prefix, example in zip(prefixes, examples, strict=True):
            shard = int.from_bytes(hash_of(example)[-8:], "big") % len(parts)
            parts[shard].append(prefix + example)
        is_new = folder not in self._named
        self._named.add(folder)
        for number, part in enumerate(parts):
            if part or is_new:
                yield (folder, number), part


def _numbers_of(
    batch: Batch | ScoredBatch, examples: Sequence[bytes], options: JobOptions
) -> Iterator[bytes]:
    """Yields the numbers of the records, which are compared if there are too many."""
    numbers = np.zeros(len(examples), np.uint64)
    if options.max_per_language is not None:
        drawn = [random_number_of(example, options.seed) for example in examples]
        numbers = np.array(drawn, np.uint64)
        if options.best_by is not None:
            numbers = best_first(batch.scores[options.best_by], numbers)
    return map(_NUMBER.pack, numbers)


def best_first(scores: Sequence[float], numbers: np.ndarray) -> np.ndarray:
    """Returns numbers that ascend as the scores descend: [n] uint64.

    Scores are compared as float32; NaN comes last. Random `numbers` order records of equal scores.
    """
    values = np.asarray(scores, np.float32)
    bits = np.where(np.isnan(values), np.float32(-np.inf), values).view(np.uint32)
    # As unsigned integers, the bits of positive floats ascend, the bits of negative floats descend.
    ascending = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31))
    return (~ascending).astype(np.uint64) << np.uint64(32) | numbers >> np.uint64(32)


def _number_shard(
    element: tuple[_Shard, Iterable[Parcel]], crowded: Mapping[str, int]
) -> Iterator[Numbers]:
    """Yields the numbers of a shard's distinct records, if its language needs a cutoff."""
    (language, _), parcels = element
    if language in crowded:
        distinct, _, _ = _read_shard(parcels)
        yield language, np.array(list(distinct.values()), np.uint64)


def _read_shard(parcels: Iterable[Parcel]) -> tuple[dict[bytes, int], set[bytes], int]:
    """Returns the number of each distinct record, which of them are repeated, and the repeats."""
    distinct: dict[bytes, int] = {}
    repeated, repeats = set(), 0
    for value in unpack_all(parcels):
        example, number = value[_NUMBER.size :], _NUMBER.unpack_from(value)[0]
        if example in distinct:
            repeated.add(example)
            repeats += 1
            # A model's scores of equal records may differ in the last digit.
            number = min(number, distinct[example])
        distinct[example] = number
    return distinct, repeated, repeats


@beam.ptransform_fn
def FindCuts(numbers, maximum: int):
    """PCollection of `Numbers` -> (language, largest number that is kept).

    The numbers of a language are distinct, except for hash collisions. Languages with at most
    `maximum` numbers have no cutoff.
    """
    bins = (
        numbers
        | "Count" >> beam.MapTuple(_histogram)
        | "Add up" >> beam.CombinePerKey(_add_up)
        | "Find bins" >> beam.FlatMap(_find_bin, maximum)
    )
    return (
        numbers
        | "Select" >> beam.FlatMap(_select, beam.pvalue.AsDict(bins))
        | "Gather" >> beam.GroupByKey()
        | "Cut" >> beam.MapTuple(_cut)
    )


def _histogram(language: str, numbers: np.ndarray) -> tuple[str, tuple[np.ndarray, np.ndarray]]:
    """Returns the language; the bins that are not empty, ascending, and their counts."""
    return language, np.unique(numbers >> _SHIFT, return_counts=True)


def _add_up(histograms: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    total = np.zeros(1 << _BIN_BITS, np.int64)
    for bins, counts in histograms:
        total[bins] += counts
    bins = np.flatnonzero(total)
    return bins, total[bins]


def _find_bin(
    counted: tuple[str, tuple[np.ndarray, np.ndarray]], maximum: int
) -> Iterator[tuple[str, _Bin]]:
    language, (bins, counts) = counted
    up_to = np.cumsum(counts)
    if up_to[-1] > maximum:
        place = np.searchsorted(up_to, maximum)
        yield language, (int(bins[place]), int(maximum - up_to[place] + counts[place]))


def _select(
    element: Numbers, bins: Mapping[str, _Bin]
) -> Iterator[tuple[str, tuple[int, np.ndarray]]]:
    language, numbers = element
    if language in bins:
        chosen, rank = bins[language]
        yield language, (rank, numbers[numbers >> _SHIFT == chosen])


def _cut(language: str, parts: Iterable[tuple[int, np.ndarray]]) -> tuple[str, int]:
    ranks, numbers = zip(*parts, strict=True)
    return language, int(np.sort(np.concatenate(numbers))[ranks[0] - 1])


def _write_shard(
    element: tuple[_Shard, Iterable[Parcel]],
    folder: str,
    record_type: type[Record],
    options: JobOptions,
    shards: Mapping[str, int],
    cuts: Mapping[str, int],
) -> Iterator[Counted]:
    (language, number), parcels = element
    distinct, repeated, repeats = _read_shard(parcels)
    cut = cuts.get(language, math.inf)
    kept = [example for example, place in distinct.items() if place <= cut]
    over = [example for example, place in distinct.items() if place > cut]
    name = f"part-{number:05}-of-{shards[language]:05}.tfrecord.gz"
    write_file(join(folder, language, name), _encode_shard(sorted(kept, key=hash_of)))
    yield (language, KEPT), len(kept), []
    for reason, count, gone in ((DUPLICATE, repeats, repeated), (OVER_CAP, len(over), over)):
        numbered = ((random_number_of(example, options.seed), example) for example in gone)
        drawn = smallest(numbered, options.examples) if options.examples else []
        records = [(place, parse_record(record_type, example)) for place, example in drawn]
        yield (language, reason), count, [(one, describe_record(record)) for one, record in records]


def _encode_shard(examples: Sequence[bytes]) -> bytes:
    content = io.BytesIO()
    # No name or time in the header, so that equal records give equal files.
    with gzip.GzipFile(filename="", mode="wb", fileobj=content, compresslevel=6, mtime=0) as stream:
        write_records(stream, examples)
    return content.getvalue()
