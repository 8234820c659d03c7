"""What the pipelines pass on: records and batches of them; their form in a shard.

The kinds of records are the rows of `labse_tf.files.record_kinds.KINDS`.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import NamedTuple

from beam_pipelines.records.tf_example import encode_example
from labse_tf.files.record_kinds import (
    ENGLISH,
    KINDS,
    Pair,
    Sentence,
    kind_of_fields,
    kind_of_record,
)

# ISO 639-2's code for text of unknown language.
UNDETERMINED = "und"
# The field of a record's language, in TFRecord and Parquet files.
LANGUAGE_FIELD = "language_code"
# Small enough that a batch of long paragraphs fits in memory many times over, large enough that
# Beam's cost per step does not matter.
RECORDS_PER_BATCH = 1000


class Document(NamedTuple):
    """A page of the web or of Wikipedia, before sentences are made of it.

    Attributes:
      text: its paragraphs, a line each.
      language: as for `Sentence`; UNDETERMINED where only the text can tell.
    """

    text: str
    language: str


Record = Sentence | Pair | Document


class Batch(NamedTuple):
    """Some records of one language and one kind: what moves between the steps of a pipeline."""

    language: str
    records: list[Record]


class ScoredBatch(NamedTuple):
    """A batch of records, and what each filter found in them.

    Attributes:
      language: of all records.
      records: of one kind.
      scores: name of a filter -> a score for each record; empty for an unsupported language.
    """

    language: str
    records: list[Record]
    scores: dict[str, list[float]]


class NumberedBatch(NamedTuple):
    """A batch that knows its place in the corpus.

    Attributes:
      language: as for `Batch`.
      records: these follow each other in their file, those of other languages left out.
      file: the number of the file, from 0.
      first: the number of the first record among those of this language in this file, from 0.
    """

    language: str
    records: list[Record]
    file: int
    first: int


def texts_of(record: Record) -> tuple[str, ...]:
    """Returns the texts of a record: one of a sentence or document, two of a pair."""
    return record[:-1]


def texts_by_language(record: Record) -> tuple[tuple[str, str], ...]:
    """Returns `(language, text)` of each text of a record; of a pair English first."""
    kind, language = kind_of_record(type(record)), record.language
    texts = zip(kind.fields, texts_of(record), strict=True)
    return tuple([(ENGLISH if name in kind.english else language, text) for name, text in texts])


def encode_record(record: Record) -> bytes:
    """Returns the serialized `tf.train.Example` of a record; equal records give equal bytes.

    A sentence is `{text, language_code}`, a pair `{src_raw, tgt_raw, language_code}`.
    """
    return encode_example(dict(zip(_feature_names(type(record)), record, strict=True)))


@functools.cache
def _feature_names(record_type: type[Record]) -> tuple[str, ...]:
    return (*field_names(record_type), LANGUAGE_FIELD)


def field_names(record_type: type[Record]) -> tuple[str, ...]:
    """Returns the names of the texts of a record: those of features and columns."""
    return kind_of_record(record_type).fields


def record_type_of(kind: str | None, names: Collection[str]) -> type[Record]:
    """Returns the type of a file's records; the names of its fields tell a kind that is None."""
    return KINDS[kind or kind_of_fields(names)].record


def build_record(
    record_type: type[Record], features: Mapping[str, str], language: str | None
) -> Record:
    """Returns a record; `language` stands in where there is no feature `language_code`.

    Raises:
      ValueError: if a text is missing, or there is no language.
    """
    for name in field_names(record_type):
        if name not in features:
            raise ValueError(f"no feature '{name}'")
    language = features.get(LANGUAGE_FIELD) or language
    if language is None:
        raise ValueError("no feature 'language_code', and the file's name tells no language")
    texts = (features[name].strip() for name in field_names(record_type))
    return record_type(*texts, language)
