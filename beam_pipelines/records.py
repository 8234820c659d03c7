"""Records, batches of records, and TFRecord files of them, without TensorFlow and Beam.

The kinds of records are the rows of `labse_tf.files.record_kinds.KINDS`. TensorFlow's import would
cost every worker eight seconds.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple

import google_crc32c
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory, text_format

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
# A character that no text has: something is missing here, so that the sentence is incomplete.
HOLE = "\ufdd0"
# The name of the language field in TFRecord and Parquet files.
LANGUAGE_FIELD = "language_code"
# Small enough that a batch of long paragraphs fits in memory many times over, large enough that
# Beam's cost per step does not matter.
RECORDS_PER_BATCH = 1000


class Document(NamedTuple):
    """A web page or Wikipedia article, before it is split into sentences."""

    text: str  # Its paragraphs, one per line; HOLE where the reader cannot tell what is shown.
    language: str  # UNDETERMINED if it has to be identified from the text.


Record = Sentence | Pair | Neighbours | Document


class Batch(NamedTuple):
    """Records of one language and one kind; the element that pipeline steps exchange."""

    language: str
    records: list[Record]


class ScoredBatch(NamedTuple):
    language: str
    records: list[Record]
    # Name of a filter -> a score for each record; empty for an unsupported language.
    scores: dict[str, list[float]]


class NumberedBatch(NamedTuple):
    """Consecutive records of a file, not counting those in other languages."""

    language: str
    records: list[Record]
    file: int  # The number of the file, from 0.
    first: int  # The number of the first record, from 0, of this language in this file.


def texts_of(record: Record) -> tuple[str, ...]:
    """Returns the texts of a record: one for a sentence or document, two for a pair."""
    return record[:-1]


def texts_by_language(record: Record) -> tuple[tuple[str, str], ...]:
    """Returns `(language, text)` of each text of a record; for a pair, English first."""
    kind, language = kind_of_record(type(record)), record.language
    texts = zip(kind.fields, texts_of(record), strict=True)
    return tuple([(ENGLISH if name in kind.english else language, text) for name, text in texts])


def field_names(record_type: type[Record]) -> tuple[str, ...]:
    """Returns the names of a record's texts in features and columns."""
    return kind_of_record(record_type).fields


def record_type_of(kind: str | None, names: Collection[str]) -> type[Record]:
    """Returns the type of a file's records; if `kind` is None, the field names determine it."""
    return KINDS[kind or kind_of_fields(names)].record


def build_record(
    record_type: type[Record], features: Mapping[str, str], language: str | None
) -> Record:
    """Returns a record; `language` is used if there is no feature `language_code`.

    Raises ValueError as `make_record`, or if a text or the language is missing.
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
    are kept as they are. Raises ValueError if it says that both texts of a pair are English.
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


# The part of `tf.train.Example` that holds byte strings, with TensorFlow's field numbers and types.
# Its own package and descriptor pool keep it from clashing with TensorFlow's definitions.
_DESCRIPTION = """
name: "labse_example.proto" package: "labse_example" syntax: "proto3"
message_type { name: "BytesList"
  field { name: "value" number: 1 type: TYPE_BYTES label: LABEL_REPEATED } }
message_type { name: "Feature"
  field { name: "bytes_list" number: 1 type_name: "BytesList" label: LABEL_OPTIONAL } }
message_type { name: "Features"
  nested_type { name: "FeatureEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type_name: "Feature" label: LABEL_OPTIONAL } }
  field { name: "feature" number: 1 type_name: "FeatureEntry" label: LABEL_REPEATED } }
message_type { name: "Example"
  field { name: "features" number: 1 type_name: "Features" label: LABEL_OPTIONAL } }
"""
_pool = descriptor_pool.DescriptorPool()
_pool.Add(text_format.Parse(_DESCRIPTION, descriptor_pb2.FileDescriptorProto()))
_Example = message_factory.GetMessageClass(_pool.FindMessageTypeByName("labse_example.Example"))


def encode_record(record: Record) -> bytes:
    """Returns the serialized `tf.train.Example` of a record: its texts and `language_code`."""
    names = (*field_names(type(record)), LANGUAGE_FIELD)
    return encode_example(dict(zip(names, record, strict=True)))


def encode_example(features: Mapping[str, str]) -> bytes:
    """Returns a serialized Example of UTF-8 byte features; equal features give equal bytes."""
    example = _Example()
    for name, text in features.items():
        example.features.feature[name].bytes_list.value.append(text.encode("utf-8"))
    # Without `deterministic` the order of the features may differ between processes.
    return example.SerializeToString(deterministic=True)


def decode_example(data: bytes) -> dict[str, str]:
    """Returns the features of a serialized Example that hold one UTF-8 byte string each.

    Raises ValueError if `data` is not a serialized Example or a byte string is not UTF-8.
    """
    try:
        example = _Example.FromString(data)
    except message.DecodeError as error:
        raise ValueError("not a tf.train.Example") from error
    values = {name: one.bytes_list.value for name, one in example.features.feature.items()}
    return {name: value[0].decode("utf-8") for name, value in values.items() if len(value) == 1}


def parse_record(record_type: type[Record], data: bytes) -> Record:
    """Returns the record that `encode_record` serialized."""
    return build_record(record_type, decode_example(data), None)


# A record in a file: the length, its checksum (CRC-32C), the data, their checksum.
_HEADER = struct.Struct("<Q4s")
# A longer record is treated as damage, and no memory is allocated for it: 1 GiB.
_MAX_RECORD_BYTES = 1 << 30


def _checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    # TFRecord stores checksums rotated and shifted, so that data containing checksums stays safe.
    masked = ((crc >> 15) | (crc << 17)) + 0xA282EAD8
    return (masked & 0xFFFFFFFF).to_bytes(4, "little")


def write_records(stream: BinaryIO, records: Sequence[bytes]) -> None:
    """Writes serialized records to a binary stream in TFRecord framing."""
    parts = []
    for record in records:
        length = len(record).to_bytes(8, "little")
        parts += (length, _checksum(length), record, _checksum(record))
    # In one write: compressors are slow with small ones.
    stream.write(b"".join(parts))


def read_records(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the serialized records of a binary stream in TFRecord framing, checksums verified.

    Raises ValueError with the number of a record that is damaged or cut off. Errors of the stream
    are also raised after the records before them.
    """
    number = 0
    while header := stream.read(_HEADER.size):
        number += 1
        length, checksum = _HEADER.unpack(header) if len(header) == _HEADER.size else (-1, b"")
        if not 0 <= length <= _MAX_RECORD_BYTES:
            raise ValueError(f"record {number} is damaged")
        data, data_checksum = stream.read(length), stream.read(4)
        if len(data_checksum) < 4:
            raise ValueError(f"record {number} is cut off")
        if _checksum(header[:8]) != checksum or _checksum(data) != data_checksum:
            raise ValueError(f"record {number} has a wrong checksum")
        yield data
