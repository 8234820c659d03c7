"""Reads TFRecord files of `tf.train.Example`: our clean shards, and files from other programs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from beam_pipelines.reading.clean_lines import nul_byte
from beam_pipelines.reading.rows import default_language
from beam_pipelines.records import tfrecords
from beam_pipelines.records.records import Record, build_record, record_type_of, texts_of
from beam_pipelines.records.tf_example import decode_example
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile


def read_shard(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a clean shard, which are all of the shard's language.

    An invalid record is replaced by an InputError.

    Raises:
      InputError: if the shard is damaged.
    """
    for number, record in _read_records(stream, file):
        if not isinstance(record, InputError) and record.language != file.language:
            record = _unreadable(file, f"record {number} is of language '{record.language}'")
        yield record


def read_tfrecord(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a file that may hold several languages.

    A record that lacks a feature is replaced by an InputError.

    Raises:
      InputError: if the file is damaged or empty.
    """
    empty = True
    for _, record in _read_records(stream, file):
        empty = False
        yield record
    if empty:
        raise InputError("the file is empty", path=file.path, remedy="remove it or fill it")


def _read_records(stream: BinaryIO, file: CorpusFile) -> Iterator[tuple[int, Record | InputError]]:
    """Yields each record's number, from 1, and the record, its language as from `find_code`."""
    data = gzip.GzipFile(fileobj=stream) if file.path.lower().endswith(".gz") else stream
    record_type = None
    try:
        for number, example in enumerate(tfrecords.read_records(data), start=1):
            try:
                features = decode_example(example)
                # All records of a file are of one kind: the first one's, if the name tells none.
                record_type = record_type or record_type_of(file.kind, features)
                record = build_record(record_type, features, default_language(file))
                if any("\0" in text for text in texts_of(record)):
                    record = nul_byte(file.path, f"record {number}")
            except ValueError as error:
                record = _unreadable(file, f"record {number}: {error}")
            yield number, record
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise _unreadable(file, str(error)) from error


def _unreadable(file: CorpusFile, problem: str) -> InputError:
    return InputError(
        f"the TFRecord file cannot be read ({problem})", path=file.path, remedy="write it again"
    )
