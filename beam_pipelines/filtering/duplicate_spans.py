"""Removes three-sentence spans that occur in several places of the corpus (C4, section 2.2).

Two texts are equal here if their letters and digits are: case, spaces and punctuation are ignored.
One occurrence of a span is kept, chosen by hash, so that neither the runner nor the order of the
input matters. A removed sentence is part of a span that is kept elsewhere, so no sentence is lost.

Only hashes are compared across the corpus: 24 bytes per span, in buckets of which a worker holds
one in memory. Meanwhile the text is in files.
"""

from __future__ import annotations

import collections
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import apache_beam as beam
import numpy as np
import regex

from beam_pipelines.filtering.job_options import JobOptions, drop_step
from beam_pipelines.filtering.prepare_text import Passage, by_language, count_dropped
from beam_pipelines.records import Sentence
from beam_pipelines.runtime.shuffle import GroupValues, PackValues, unpack_values

DUPLICATE_SPAN = "duplicate_span"
SENTENCES_PER_SPAN = 3

# A worker sorts one bucket in memory: 1 TB of text has 10 million spans in each, 240 MB.
_BUCKETS = 1024
# Length of the hash of a chunk.
_KEY_BYTES = 16

# An occurrence of a span: its hash, its passage's hash, the index of the passage in the chunk and
# the index of the span in the passage, both from 0.
_SPAN = np.dtype([("span", "<u8"), ("passage", "<u8"), ("number", "<u4"), ("start", "<u4")])
_NOT_TEXT = regex.compile(r"[^\p{L}\p{M}\p{N}]+")

_Chunk = list[Passage]


@beam.ptransform_fn
def RemoveDuplicateSpans(chunks, temporary: str | None, options: JobOptions):
    """PCollection of lists of passages -> (batches of the remaining sentences, counts, examples).

    The reason is DUPLICATE_SPAN; `temporary` is a folder for files, or None, see `shuffle`.
    """
    keyed = chunks | "Key" >> beam.Map(lambda chunk: (_hash_chunk(chunk), chunk))
    repeated = (
        keyed
        | "Spans" >> beam.FlatMap(_list_spans)
        | "Gather" >> GroupValues(temporary)
        | "Compare" >> beam.FlatMap(_list_repeated)
    )
    packed = (
        keyed
        | "Encode" >> beam.MapTuple(lambda key, chunk: (key, [_encode(chunk)]))
        | "Pack" >> PackValues(temporary)
    )
    grouped = {"chunks": packed, "repeated": repeated} | beam.CoGroupByKey()
    return grouped | "Remove" >> drop_step(_remove, options)


def _hash_chunk(chunk: _Chunk) -> bytes:
    """Returns a hash of the chunk's content: the same if failed work is repeated."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    for passage in chunk:
        digest.update(_hash_passage(passage))
    return digest.digest()


def _hash_passage(passage: Passage) -> bytes:
    content = "\n".join(f"{sentence.language}\t{sentence.text}" for sentence in passage)
    return hashlib.blake2b(content.encode("utf-8"), digest_size=16).digest()


def find_spans(chunk: _Chunk) -> np.ndarray:
    """Returns the spans of a chunk and their positions: `[spans]` of `_SPAN`."""
    rows = []
    for number, passage in enumerate(chunk):
        if len(passage) < SENTENCES_PER_SPAN:
            continue
        passage_hash = int.from_bytes(_hash_passage(passage)[:8], "little")
        essences = [_NOT_TEXT.sub("", sentence.text.casefold()) for sentence in passage]
        for start in range(len(passage) - SENTENCES_PER_SPAN + 1):
            span = "\n".join(essences[start : start + SENTENCES_PER_SPAN])
            digest = hashlib.blake2b(span.encode("utf-8"), digest_size=8).digest()
            rows.append((int.from_bytes(digest, "little"), passage_hash, number, start))
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


def _list_spans(keyed: tuple[bytes, _Chunk]) -> Iterator[tuple[int, list[bytes]]]:
    """Yields `(bucket, [hash of the chunk and its spans])`."""
    key, chunk = keyed
    spans = find_spans(chunk)
    for bucket, part in _split(spans, spans["span"] % _BUCKETS):
        yield bucket, [key + part.tobytes()]


def _list_repeated(bucket: tuple[int, Iterable[list[bytes]]]) -> Iterator[tuple[bytes, bytes]]:
    """Yields `(hash of the chunk, its spans to remove)`."""
    parts = [part for values in bucket[1] for part in values]
    keys = [part[:_KEY_BYTES] for part in parts]
    lengths = [(len(part) - _KEY_BYTES) // _SPAN.itemsize for part in parts]
    spans = np.frombuffer(b"".join(part[_KEY_BYTES:] for part in parts), _SPAN)
    mask = find_repeated(spans)
    chunks = np.repeat(np.arange(len(keys)), lengths)
    for number, part in _split(spans[mask], chunks[mask]):
        yield keys[number], part.tobytes()


def _split(spans: np.ndarray, labels: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yields each label with its spans."""
    # NumPy would split an empty array into one empty part.
    if not len(spans):
        return
    order = np.argsort(labels, kind="stable")
    values, starts = np.unique(labels[order], return_index=True)
    for value, part in zip(values, np.split(spans[order], starts[1:]), strict=True):
        yield int(value), part


def _encode(chunk: _Chunk) -> bytes:
    return json.dumps(chunk, ensure_ascii=False).encode("utf-8")


def _decode(data: bytes) -> _Chunk:
    return [[Sentence(*sentence) for sentence in passage] for passage in json.loads(data)]


def _remove(element: tuple[bytes, Mapping[str, Sequence]], options: JobOptions) -> Iterator:
    _, groups = element
    repeated = list(groups["repeated"])
    for data in (data for parcel in groups["chunks"] for data in unpack_values(parcel)):
        left, repetitions = remove_spans(_decode(data), repeated)
        yield from by_language(left)
        dropped = {DUPLICATE_SPAN: repetitions}
        yield from options.report_dropped(count_dropped(dropped), dropped)
