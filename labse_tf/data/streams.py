"""Endless, shuffled streams of records, with languages mixed by weight, from any step on.

A stream is a function of its files, its seed, the records drawn before, and TensorFlow's global
seed (which training sets): the same call gives the same order on every machine.

A run reads its corpora anew every SEGMENT steps: each language from where the run is expected to be
in it, with another seed. So a resumed run replays less than a segment, however long it has trained,
and has the batches that the unbroken run would have had. What the last segment had read ahead into
its shuffle buffer is read again, and of a language that fills less than a buffer in a segment, some
records come twice in a pass and others not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from labse_tf.data import texts
from labse_tf.data.record_counts import count_records
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.files.stores import STORAGE
from labse_tf.tokenization.protocol import Tokenizer

SEGMENT = 1000  # Steps.
_SHUFFLE_BUFFER = 20_000  # Records per language: all of its data if it has few.
_RECORDS_MEASURED = 64  # Per language.

_language = attrgetter("language")


class Part(NamedTuple):
    """A part of the input, which makes the same share of each global batch.

    It reads files of its own if a language has at least as many files as there are parts, else
    every n-th record.
    """

    index: int  # Counted from 0.
    of: int  # The number of parts.


WHOLE = Part(0, 1)


class Position(NamedTuple):
    """Where in its input a run is."""

    start: int  # The steps before the segment.
    skip: int  # The steps of the segment before this one.
    shared_seed: int  # The segment's, for choices that are the same in all parts of a batch.
    part: Part = WHOLE

    @property
    def seed(self) -> int:
        """The seed of the part."""
        return self.shared_seed + 32_452_843 * self.part.index


def position(step: int, seed: int, part: Part = WHOLE) -> Position:
    """Returns where a run with this seed is after `step` steps."""
    number, skip = divmod(step, SEGMENT)
    return Position(number * SEGMENT, skip, seed + 15_485_863 * number, part)


def seed_of_stage(seed: int, stage: int) -> int:
    """Returns the seed of a stage, counted from 0: each one has its own order of the data."""
    return seed + 1_000_003 * stage


def drawn_of(weights: Mapping[str, float], records: float) -> dict[str, int]:
    """Returns how many of `records` are expected to be of each language; weights add up to 1."""
    return {language: round(share * records) for language, share in weights.items()}


def language_streams(
    files: Sequence[CorpusFile],
    *,
    seed: int,
    drawn: Mapping[str, int] | None = None,
    part: Part = WHOLE,
    negatives: int = 0,
) -> dict[str, tf.data.Dataset]:
    """Returns an endless shuffled dataset of records for each language.

    An element is a serialized `tf.train.Example`. Only whole batches are parsed, since a parsing
    graph for each language would take longer to build than to run.

    Args:
      files: of one kind.
      seed: determines the order.
      drawn: records of each language that were drawn before; a stream begins about there, as if
        files of equal bytes had equally many records.
      part: the part of the files to read; `drawn` is of this part.
      negatives: the number of hard negatives that `texts.parse` will read per pair.
    """
    by_language = groupby(sorted(files, key=_language), key=_language)
    counts = count_records(files) if drawn and any(drawn.values()) else {}
    streams = {}
    for index, (language, group) in enumerate(by_language):
        every, begin = sorted(group), 0
        by_file = len(every) >= part.of
        order = every[part.index :: part.of] if by_file else every
        if counts.get(language):
            share = _bytes(order) / _bytes(every)
            before = drawn[language] if by_file else drawn[language] * part.of
            order, begin = _from(order, max(1, round(share * counts[language])), before)
        parts = [texts.records(order[0], negatives=negatives, skip=begin)]
        parts += [texts.records(file, negatives=negatives) for file in order[1:]]
        if begin:
            parts.append(texts.records(order[0], negatives=negatives).take(begin))
        records = texts.concatenate(parts)
        if not by_file:
            records = records.shard(part.of, part.index)
        records = records.shuffle(_SHUFFLE_BUFFER, seed=seed + index, reshuffle_each_iteration=True)
        streams[language] = records.repeat()
    return streams


def draw_records(
    files: Sequence[CorpusFile],
    weights: dict[str, float],
    place: Position,
    *,
    before: float,
    negatives: int = 0,
    block: int = 0,
) -> tf.data.Dataset:
    """Returns the stream of `place.part` in which each record is of a language drawn by weight.

    The part has drawn `before` records of all languages before. With `block`, an element is a batch
    of so many records of a language. `files` and `negatives` are as for `language_streams`; the
    weights add up to 1.
    """
    options = {"seed": place.seed, "part": place.part, "negatives": negatives}
    by_language = language_streams(files, drawn=drawn_of(weights, before), **options)
    if block:
        by_language = {language: stream.batch(block) for language, stream in by_language.items()}
    return mix(by_language, weights, seed=place.seed)


def mix(
    streams: dict[str, tf.data.Dataset], weights: dict[str, float], *, seed: int
) -> tf.data.Dataset:
    """Returns one stream that draws each element from a language chosen by weight."""
    languages = sorted(streams)
    if len(languages) == 1:
        return streams[languages[0]]
    return tf.data.Dataset.sample_from_datasets(
        [streams[language] for language in languages],
        weights=[weights[language] for language in languages],
        seed=seed,
    )


def measure_tokens(files: Sequence[CorpusFile], tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """Returns the tokens of the first records of each language, int64 `[records, fields]`.

    A language whose first file has no record is left out.
    """
    found = {}
    for language, group in groupby(sorted(files, key=_language), key=_language):
        first = min(group)
        with texts.input_errors():
            for some in texts.records(first).batch(_RECORDS_MEASURED).take(1):
                columns = texts.parse(first.kind, some)
                found[language] = np.stack([tokenizer(one).row_lengths() for one in columns], 1)
    return found


def _bytes(files: Sequence[CorpusFile]) -> int:
    return sum(STORAGE.size(file.path) for file in files)


def _from(files: list[CorpusFile], count: int, drawn: int) -> tuple[list[CorpusFile], int]:
    """Returns `files` in the order in which a pass continues, and the records to skip in the first.

    The files of a language have `count` records, of which `drawn` were drawn before.
    """
    sizes = [STORAGE.size(file.path) for file in files]
    ends = list(accumulate(sizes))
    place = drawn % count / count * ends[-1]  # In bytes.
    first = next(number for number, end in enumerate(ends) if place < end)
    within = place - (ends[first] - sizes[first])
    return files[first:] + files[:first], int(within / ends[-1] * count)
