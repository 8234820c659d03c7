"""What the pipelines pass on: sentences, pairs, and batches of them; their form in a shard."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from beam_pipelines.records.tf_example import encode_example
from labse_tf.files.corpus_files import BITEXT, MONOLINGUAL

ENGLISH = "en"
# ISO 639-2's code for text of unknown language.
UNDETERMINED = "und"
# The field of a record's language, in TFRecord and Parquet files.
LANGUAGE_FIELD = "language_code"
# Small enough that a batch of long paragraphs fits in memory many times over, large enough that
# Beam's cost a step does not count.
RECORDS_PER_BATCH = 1000


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
      scores: name of a filter -> a score for each record; empty for a language that is none of the
        paper's.
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
    """Returns the text of a sentence or document, or the two sides of a pair."""
    return record[:-1]


def texts_by_language(record: Record) -> tuple[tuple[str, str], ...]:
    """Returns `(language, text)` of a sentence, or of each side of a pair, English first."""
    if isinstance(record, Sentence):
        return ((record.language, record.text),)
    return ((ENGLISH, record.source), (record.language, record.target))


def encode_record(record: Record) -> bytes:
    """Returns the serialized `tf.train.Example` of a record; equal records give equal bytes.

    A sentence is `{text, language_code}`, a pair `{src_raw, tgt_raw, language_code}`.
    """
    if isinstance(record, Sentence):
        return encode_example({"text": record.text, LANGUAGE_FIELD: record.language})
    return encode_example(
        {"src_raw": record.source, "tgt_raw": record.target, LANGUAGE_FIELD: record.language}
    )


def field_names(record_type: type[Record]) -> tuple[str, ...]:
    """Returns the names of the texts of a record: those of features and columns."""
    return ("text",) if record_type is Sentence else ("src_raw", "tgt_raw")


def record_type_of(kind: str | None, names: Collection[str]) -> type[Record]:
    """Returns the type of a file's records, where its kind is not known by its fields' names."""
    if kind is None:
        kind = BITEXT if "src_raw" in names else MONOLINGUAL
    return Pair if kind == BITEXT else Sentence


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
