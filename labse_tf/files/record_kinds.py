"""The kinds of records that corpora hold: a row of `KINDS` for each.

To add a kind, write its record (a NamedTuple: the texts, then `language`) and its row. Readers,
shards, scores and `tf.data` streams take the fields from here; a folder `KIND/<lang>/` of shards is
known by the row's key.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import NamedTuple

MONOLINGUAL = "monolingual"
BITEXT = "bitext"

ENGLISH = "en"


class Sentence(NamedTuple):
    """A line of monolingual text.

    Attributes:
      text: the line without surrounding white space; may be empty.
      language: the paper's code of its language, or the file's for a language that it lacks.
    """

    text: str
    language: str


class Pair(NamedTuple):
    """A pair of translations.

    Attributes:
      source: the English side, without surrounding white space.
      target: the other side, likewise.
      language: that of the target, as for `Sentence`.
    """

    source: str
    target: str
    language: str


class RecordKind(NamedTuple):
    """How records of a kind look in memory and in files.

    Attributes:
      record: their type, a NamedTuple of the texts and the language, in this order.
      fields: the names of the texts in TFRecord and Parquet files, in the order of the record. The
        first one tells the kind of a file whose name does not.
      english: those fields whose text is in English, whatever the record's language.
    """

    record: type
    fields: tuple[str, ...]
    english: Collection[str] = ()


KINDS = {
    MONOLINGUAL: RecordKind(Sentence, ("text",)),
    BITEXT: RecordKind(Pair, ("src_raw", "tgt_raw"), english=("src_raw",)),
}


def kind_of_fields(names: Collection[str]) -> str:
    """Returns the kind of records with these fields; MONOLINGUAL where they tell none."""
    # Later rows first: a new kind may share the field `text` with sentences.
    for name, kind in reversed(KINDS.items()):
        if kind.fields[0] in names:
            return name
    return MONOLINGUAL


def describe_fields() -> str:
    """Returns which fields the records of each kind need, for a remedy."""
    needs = {name: " and ".join(map(repr, kind.fields)) for name, kind in KINDS.items()}
    return ", ".join(f"{name} records need {fields}" for name, fields in needs.items())


@functools.cache  # It is asked for every record.
def kind_of_record(record_type: type) -> RecordKind:
    """Returns the row of a type of records."""
    for kind in KINDS.values():
        if kind.record is record_type:
            return kind
    raise TypeError(f"{record_type.__name__} is the record of no kind: add a row to KINDS")
