"""Removes three-sentence spans that occur in several places of the corpus (C4, section 2.2).

Two texts are equal here if their letters and digits are: case, spaces and punctuation are ignored.
One occurrence of a span is kept, chosen by hash, so that neither the runner nor the order of the
input matters. A removed sentence is part of a span that is kept elsewhere, so no sentence is lost.

Only hashes are compared across the corpus: 24 bytes per span, in buckets of which a worker holds
one in memory. Meanwhile the text is in files.
"""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np
import regex

from beam_pipelines.filtering.apply_filters import JobOptions, drop_step
from beam_pipelines.filtering.prepare_text import Passage, by_language
from beam_pipelines.records import Sentence
from beam_pipelines.runtime.shuffle import (
    HASH_BYTES,
    GroupValues,
    PackValues,
    Parcel,
    hash_of,
    random_number_of,
    unpack_all,
)

DUPLICATE_SPAN = "duplicate_span"
SENTENCES_PER_SPAN = 3

# A worker sorts one bucket in memory: 1 TB of text has 10 million spans in each, 240 MB.
_BUCKETS = 1024

# An occurrence of a span: its hash, its passage's hash, the index of the passage in the chunk and
# the index of the span in the passage, both from 0.
_SPAN = np.dtype([("span", "<u8"), ("passage", "<u8"), ("number", "<u4"), ("start", "<u4")])
_NOT_TEXT = regex.compile(r"[^\p{L}\p{M}\p{N}]+")

_Chunk = list[Passage]


@beam.ptransform_fn
def RemoveDuplicateSpans(chunks, temporary: str | None, options: JobOptions):
    """PCollection of lists of passages -> (batches of the remaining sentences, counted).

    The reason is DUPLICATE_SPAN; `temporary` is a folder for files, or None, see `shuffle`.
    """
    keyed = chunks | "Encode" >> beam.Map(_encode)
    repeated = (
        keyed
        | "Spans" >> beam.FlatMapTuple(_list_spans)
        | "Gather" >> GroupValues(temporary)
        | "Compare" >> beam.FlatMapTuple(_list_repeated)
    )
    packed = keyed | "Pack" >> PackValues(temporary)
    grouped = {"chunks": packed, "repeated": repeated} | beam.CoGroupByKey()
    return grouped | "Remove" >> drop_step(_remove, options)


def _encode(chunk: _Chunk) -> tuple[bytes, list[bytes]]:
    """Returns a chunk as bytes, after their hash: the same if failed work is repeated."""
    data = json.dumps(chunk, ensure_ascii=False).encode("utf-8")
    return hash_of(data), [data]


def _decode(data: bytes) -> _Chunk:
    return [[Sentence(*sentence) for sentence in passage] for passage in json.loads(data)]


def find_spans(chunk: _Chunk) -> np.ndarray:
    """Returns the spans of a chunk and their positions: `[spans]` of `_SPAN`."""
    rows = []
    for number, passage in enumerate(chunk):
        if len(passage) < SENTENCES_PER_SPAN:
            continue
        content = "\n".join(f"{sentence.language}\t{sentence.text}" for sentence in passage)
        passage_hash = int.from_bytes(hash_of(content.encode("utf-8"))[:8], "little")
        essences = [_NOT_TEXT.sub("", sentence.text.casefold()) for sentence in passage]
        for start in range(len(passage) - SENTENCES_PER_SPAN + 1):
            span = "\n".join(essences[start : start + SENTENCES_PER_SPAN])
            rows.append((random_number_of(span.encode("utf-8"), 0), passage_hash, number, start))
    return np.array(rows, _SPAN)


def find_repeated(spans: np.ndarray) -> np.ndarray:
    """Returns a mask of the spans to remove in favour of an equal one.

    Of equal spans, the first in the passage with the lowest hash is kept. So are those in the same
    place of identical passages: exact duplicates are removed elsewhere, sentence by sentence.
    """
    order = np.lexsort((spans["start"], spans["passage"], spans["span"]))
    ordered = spans[order]
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered["span"][1:] != ordered["span"][:-1]
    winners = ordered[np.flatnonzero(is_first)[np.cumsum(is_first) - 1]]
    is_winner = (ordered["passage"] == winners["passage"]) & (ordered["start"] == winners["start"])
    mask = np.empty(len(spans), bool)
    mask[order] = ~is_winner
    return mask


def remove_spans(chunk: _Chunk, repeated: Iterable[bytes]) -> tuple[_Chunk, list[Sentence]]:
    """Returns the remaining passages of a chunk and the removed sentences."""
    removed: dict[int, set[int]] = collections.defaultdict(set)
    for data in repeated:
        for span in np.frombuffer(data, _SPAN):
            start = int(span["start"])
            removed[int(span["number"])].update(range(start, start + SENTENCES_PER_SPAN))
    left, repetitions = [], []
    for number, passage in enumerate(chunk):
        repetitions += [passage[place] for place in sorted(removed[number])]
        left.append(
            [sentence for place, sentence in enumerate(passage) if place not in removed[number]]
        )
    return left, repetitions


def _list_spans(key: bytes, values: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Yields `(bucket, [hash of the chunk and its spans])`."""
    spans = find_spans(_decode(values[0]))
    for bucket, part in _split(spans, spans["span"] % _BUCKETS):
        yield bucket, [key + part.tobytes()]


def _list_repeated(_: int, parcels: Iterable[Parcel]) -> Iterator[tuple[bytes, bytes]]:
    """Yields `(hash of the chunk, its spans to remove)` of a bucket."""
    parts = list(unpack_all(parcels))
    lengths = [(len(part) - HASH_BYTES) // _SPAN.itemsize for part in parts]
    spans = np.frombuffer(b"".join(part[HASH_BYTES:] for part in parts), _SPAN)
    mask = find_repeated(spans)
    chunks = np.repeat(np.arange(len(parts)), lengths)
    for number, part in _split(spans[mask], chunks[mask]):
        yield parts[number][:HASH_BYTES], part.tobytes()


def _split(spans: np.ndarray, labels: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yields each label with its spans."""
    order = np.argsort(labels, kind="stable")
    values, starts = np.unique(labels[order], return_index=True)
    # NumPy would split an empty array into one empty part, so `values` goes first.
    for value, part in zip(values, np.split(spans[order], starts[1:]), strict=False):
        yield int(value), part


def _remove(element: tuple[bytes, Mapping[str, Sequence]], options: JobOptions) -> Iterator:
    _, groups = element
    repeated = list(groups["repeated"])
    for data in unpack_all(groups["chunks"]):
        left, repetitions = remove_spans(_decode(data), repeated)
        yield from by_language(left)
        yield from options.report_dropped({DUPLICATE_SPAN: repetitions}, as_read=True)
