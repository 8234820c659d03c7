"""Records, batches of records, and their serialization in a shard.

The kinds of records are the rows of `labse_tf.files.record_kinds.KINDS`.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from beam_pipelines.records.tf_example import encode_example
from labse_tf.files.record_kinds import (
    ENGLISH,
    KINDS,
    Neighbours,
    Pair,
    Sentence,
    kind_of_fields,
    kind_of_record,
)
from labse_tf.files.textio import strip
from labse_tf.languages import find_code, find_pair, joins_two

# ISO 639-2's code for text of unknown language.
UNDETERMINED = "und"
# A character that no text has: something is missing here, so that the sentence is none.
HOLE = "\ufdd0"
# The name of the language field in TFRecord and Parquet files.
LANGUAGE_FIELD = "language_code"
# Small enough that a batch of long paragraphs fits in memory many times over, large enough that
# Beam's cost per step does not matter.
RECORDS_PER_BATCH = 1000


class Document(NamedTuple):
    """A web page or Wikipedia article, before it is split into sentences.

    Attributes:
      text: its paragraphs, one per line; with HOLE where the reader cannot tell what is shown.
      language: as for `Sentence`; UNDETERMINED if it has to be identified from the text.
    """

    text: str
    language: str


Record = Sentence | Pair | Neighbours | Document


class Batch(NamedTuple):
    """Records of one language and one kind; the element that pipeline steps exchange."""

    language: str
    records: list[Record]


class ScoredBatch(NamedTuple):
    """A batch of records with their scores.

    Attributes:
      language: of all records.
      records: of one kind.
      scores: name of a filter -> a score for each record; empty for an unsupported language.
    """

    language: str
    records: list[Record]
    scores: dict[str, list[float]]


class NumberedBatch(NamedTuple):
    """A batch with its position in the corpus.

    Attributes:
      language: as for `Batch`.
      records: consecutive records of a file, not counting those in other languages.
      file: the number of the file, from 0.
      first: the number of the first record among those of this language in this file, from 0.
    """

    language: str
    records: list[Record]
    file: int
    first: int


def texts_of(record: Record) -> tuple[str, ...]:
    """Returns the texts of a record: one for a sentence or document, two for a pair."""
    return record[:-1]


def texts_by_language(record: Record) -> tuple[tuple[str, str], ...]:
    """Returns `(language, text)` of each text of a record; for a pair, English first."""
    kind, language = kind_of_record(type(record)), record.language
    texts = zip(kind.fields, texts_of(record), strict=True)
    return tuple([(ENGLISH if name in kind.english else language, text) for name, text in texts])


def encode_record(record: Record) -> bytes:
    """Returns the serialized `tf.train.Example` of a record; equal records give equal bytes.

    A sentence is `{text, language_code}`, a pair `{src_raw, tgt_raw, language_code}`.
    """
    names = (*field_names(type(record)), LANGUAGE_FIELD)
    return encode_example(dict(zip(names, record, strict=True)))


def field_names(record_type: type[Record]) -> tuple[str, ...]:
    """Returns the names of a record's texts, which are those of features and columns."""
    return kind_of_record(record_type).fields


def record_type_of(kind: str | None, names: Collection[str]) -> type[Record]:
    """Returns the type of a file's records; if `kind` is None, the field names determine it."""
    return KINDS[kind or kind_of_fields(names)].record


def build_record(
    record_type: type[Record], features: Mapping[str, str], language: str | None
) -> Record:
    """Returns a record; `language` is used if there is no feature `language_code`.

    Raises:
      ValueError: as `make_record`, or if a text is missing, or there is no language.
    """
    try:
        texts = [features[name] for name in field_names(record_type)]
    except KeyError as missing:
        raise ValueError(f"no feature {missing}") from missing
    language = features.get(LANGUAGE_FIELD) or language
    if language is None:
        raise ValueError("no feature 'language_code', and the file's name gives no language")
    return make_record(record_type, texts, language)


def make_record(record_type: type[Record], texts: Sequence[str], language: str) -> Record:
    """Returns a record with stripped texts, whose language is a code as from `find_code`.

    `language` may name both languages of a pair, in the order of its texts: `de-en`. Other codes
    are kept as they are.

    Raises:
      ValueError: if it says that both texts of a pair are English.
    """
    code, swapped = _pair_language(language) if record_type is Pair else (None, False)
    if swapped:
        texts = texts[::-1]
    return record_type(*map(strip, texts), code or find_code(language) or language)


@functools.lru_cache(maxsize=4096)
def _pair_language(language: str) -> tuple[str, bool]:
    if pair := find_pair(language):
        return pair
    if joins_two(language):
        return language, False
    if find_code(language) == ENGLISH:
        raise ValueError(f"is a pair of English and '{language}'")
    return find_code(language) or language, False
