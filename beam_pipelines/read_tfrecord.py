"""Reads TFRecord files of `tf.train.Example`: our clean shards, and files of other writers."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from beam_pipelines import tfrecords
from beam_pipelines.examples import decode_example
from beam_pipelines.records import Record, build_record, record_type_of
from labse_tf.corpus_files import CorpusFile
from labse_tf.errors import InputError
from labse_tf.languages import find_code


def read_shard(stream: BinaryIO, file: CorpusFile) -> Iterator[Record]:
    """Yields the records of a clean shard, which are all of the shard's language.

    Raises:
      InputError: if the shard is damaged or holds anything else.
    """
    with _damage_reported(file):
        for number, record in _read_records(stream, file):
            if record.language != file.language:
                raise ValueError(f"record {number} is of language '{record.language}'")
            yield record


def read_tfrecord(stream: BinaryIO, file: CorpusFile) -> Iterator[Record]:
    """Yields the records of a file that may hold several languages.

    Raises:
      InputError: if the file is damaged or empty, or a record lacks a feature.
    """
    empty = True
    with _damage_reported(file):
        for _, record in _read_records(stream, file):
            empty = False
            yield record
    if empty:
        raise InputError("the file is empty", path=file.path, remedy="remove it or fill it")


def _read_records(stream: BinaryIO, file: CorpusFile) -> Iterator[tuple[int, Record]]:
    """Yields number from 1 and record, its language the paper's code where there is one."""
    data = gzip.GzipFile(fileobj=stream) if file.path.endswith(".gz") else stream
    record_type = None
    for number, example in enumerate(tfrecords.read_records(data), start=1):
        try:
            features = decode_example(example)
            # All records of a file are of one kind: that of the first, if its name tells none.
            record_type = record_type or record_type_of(file.kind, features)
            record = build_record(record_type, features, file.language)
        except ValueError as error:
            raise ValueError(f"record {number}: {error}") from error
        yield number, record._replace(language=find_code(record.language) or record.language)


@contextlib.contextmanager
def _damage_reported(file: CorpusFile) -> Iterator[None]:
    try:
        yield
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"the TFRecord file cannot be read ({error})", path=file.path, remedy="write it again"
        ) from error
