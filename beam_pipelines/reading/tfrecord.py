"""Reads TFRecord files of `tf.train.Example`: our clean shards, and files from other programs."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from beam_pipelines.reading.lines import nul_byte
from beam_pipelines.reading.rows import default_language
from beam_pipelines.records import tfrecords
from beam_pipelines.records.records import Record, build_record, record_type_of, texts_of
from beam_pipelines.records.tf_example import decode_example
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import SHARD, CorpusFile


def read_tfrecord(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a file; those of a clean shard are all of the shard's language.

    An invalid record is replaced by an InputError.

    Raises:
      InputError: if the file is damaged, or empty and no shard.
    """
    data = gzip.GzipFile(fileobj=stream) if file.path.lower().endswith(".gz") else stream
    record_type, number = None, 0
    try:
        for number, example in enumerate(tfrecords.read_records(data), start=1):
            try:
                features = decode_example(example)
                # All records of a file are of one kind: the first one's, if the name tells none.
                record_type = record_type or record_type_of(file.kind, features)
                record = build_record(record_type, features, default_language(file))
            except ValueError as error:
                yield _unreadable(file, f"record {number}: {error}")
                continue
            if any("\0" in text for text in texts_of(record)):
                yield nul_byte(file.path, f"record {number}")
            elif file.format == SHARD and record.language != file.language:
                yield _unreadable(file, f"record {number} is of language '{record.language}'")
            else:
                yield record
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise _unreadable(file, str(error)) from error
    if number == 0 and file.format != SHARD:
        raise textio.empty_file(file.path)


def _unreadable(file: CorpusFile, problem: str) -> InputError:
    return InputError(
        f"the TFRecord file cannot be read ({problem})", path=file.path, remedy="write it again"
    )
