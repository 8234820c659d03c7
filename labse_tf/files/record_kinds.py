"""The kinds of records in corpora: `KINDS`.

Readers, shards, scores and `tf.data` streams take the fields from here; a folder `KIND/<lang>/` of
shards is recognised by the key.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import NamedTuple

MONOLINGUAL, BITEXT, NEIGHBOURS = "monolingual", "bitext", "neighbours"
ENGLISH = "en"


class Sentence(NamedTuple):
    """A line of monolingual text without surrounding white space, maybe empty; its language."""

    text: str
    language: str


class Pair(NamedTuple):
    """A pair of translations: English, the other side, and the language of the other side."""

    source: str
    target: str
    language: str


class Neighbours(NamedTuple):
    """Two sentences that follow one another in a document, and their language."""

    text: str
    next_text: str
    language: str


class RecordKind(NamedTuple):
    """The form of a kind of records in memory and in files.

    Attributes:
      record: their type, a NamedTuple of the texts and the language, in this order.
      fields: the names of the texts in TFRecord and Parquet files, in the order of the record.
        They identify the kind of a file whose name does not.
      english: the fields that are always in English.
    """

    record: type
    fields: tuple[str, ...]
    english: Collection[str] = ()


KINDS = {
    MONOLINGUAL: RecordKind(Sentence, ("text",)),
    BITEXT: RecordKind(Pair, ("src_raw", "tgt_raw"), english=("src_raw",)),
    NEIGHBOURS: RecordKind(Neighbours, ("text", "next_text")),
}


def kind_of_fields(names: Collection[str]) -> str:
    """Returns the kind with the most fields among these; MONOLINGUAL if none has any."""
    return max(KINDS, key=lambda kind: sum(field in names for field in KINDS[kind].fields))


def describe_fields() -> str:
    """Returns a sentence for error messages: the fields that each kind of record needs."""
    needs = {name: " and ".join(map(repr, kind.fields)) for name, kind in KINDS.items()}
    return ", ".join(f"{name} records need {fields}" for name, fields in needs.items())


@functools.cache  # Called for every record.
def kind_of_record(record_type: type) -> RecordKind:
    """Returns the row of `KINDS` for a record type."""
    for kind in KINDS.values():
        if kind.record is record_type:
            return kind
    raise TypeError(f"{record_type.__name__} is not the record of any kind: add a row to KINDS")
