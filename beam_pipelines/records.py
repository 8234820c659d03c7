"""What the pipelines pass on: sentences, pairs, and batches of them; their form in a shard."""

from __future__ import annotations

from typing import NamedTuple

from beam_pipelines.examples import decode_example, encode_example

ENGLISH = "en"


class Sentence(NamedTuple):
    """A line of monolingual text.

    Attributes:
      text: the line without surrounding white space; may be empty.
      language: the paper's code of its language.
    """

    text: str
    language: str


class Pair(NamedTuple):
    """A pair of translations.

    Attributes:
      source: the English side, without surrounding white space.
      target: the other side, likewise.
      language: the paper's code of the target's language.
    """

    source: str
    target: str
    language: str


Record = Sentence | Pair


class Batch(NamedTuple):
    """Some records of one language and one kind: what moves between the steps of a pipeline."""

    language: str
    records: list[Record]


def texts_of(record: Record) -> tuple[str, ...]:
    """Returns the text of a sentence or the two sides of a pair."""
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
        return encode_example({"text": record.text, "language_code": record.language})
    return encode_example(
        {"src_raw": record.source, "tgt_raw": record.target, "language_code": record.language}
    )


def decode_record(data: bytes, record_type: type[Record], language: str) -> Record:
    """The inverse of `encode_record`; `language` stands in where there is no `language_code`.

    Raises:
      ValueError: if `data` is no serialized Example, lacks a feature, or is not UTF-8.
    """
    features = decode_example(data)
    names = ("text",) if record_type is Sentence else ("src_raw", "tgt_raw")
    missing = [name for name in names if name not in features]
    if missing:
        raise ValueError(f"has no feature '{missing[0]}'")
    texts = (features[name].strip() for name in names)
    return record_type(*texts, features.get("language_code", language))
