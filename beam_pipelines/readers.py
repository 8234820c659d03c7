"""Reads corpus files into batches of records. A file is one element: files are read in parallel."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from beam_pipelines.errors import input_errors_marked
from beam_pipelines.read_moses import read_moses
from beam_pipelines.read_parquet import read_parquet
from beam_pipelines.read_tfrecord import read_shard, read_tfrecord
from beam_pipelines.read_web import read_warc, read_wet
from beam_pipelines.read_wikipedia import read_wikipedia
from beam_pipelines.records import Batch, Pair, Record, Sentence
from labse_tf import textio
from labse_tf.corpus_files import (
    PARQUET,
    SHARD,
    TEXT,
    TFRECORD,
    TSV,
    WARC,
    WET,
    WIKIPEDIA,
    CorpusFile,
)
from labse_tf.errors import InputError

# Small enough that a batch of long paragraphs fits in memory many times over, large enough that
# Beam's cost a step does not count.
RECORDS_PER_BATCH = 1000


class ReadCorpus(beam.PTransform):
    """Corpus files -> PCollection of `Batch`.

    The language of a batch is one of the paper's, except where a file of records in several
    languages holds others too: these come as they are, so that the next step can count them.

    Raises:
      InputError: when built without files; when run, if a file is damaged (see `read_file`).
    """

    def __init__(self, files: Sequence[CorpusFile]) -> None:
        super().__init__()
        if not files:
            raise InputError("no corpus files to read", remedy="name at least one")
        # Plain tuples: Beam's coder for NamedTuples would look for a schema.
        self._files = [tuple(file) for file in files]

    def expand(self, begin):
        return (
            begin
            | "Files" >> beam.Create(self._files, reshuffle=False)
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(_ReadFile())
        )


class _ReadFile(beam.DoFn):
    def process(self, element: tuple) -> Iterator[Batch]:
        with input_errors_marked():
            yield from in_batches(read_file(CorpusFile(*element)))


def in_batches(records: Iterable[Record]) -> Iterator[Batch]:
    """Yields the records in batches of one language; holds one batch of each at most."""
    batches: dict[str, list[Record]] = collections.defaultdict(list)
    for record in records:
        batch = batches[record.language]
        batch.append(record)
        if len(batch) == RECORDS_PER_BATCH:
            yield Batch(record.language, batch)
            del batches[record.language]
    for language, batch in batches.items():
        yield Batch(language, batch)


def read_file(file: CorpusFile) -> Iterator[Record]:
    """Yields the records of one file in its order.

    Raises:
      InputError: if the file is damaged, empty (a shard may be) or not UTF-8, if a TSV line lacks
        one of its sides, if the sides of a Moses pair have different numbers of lines, if a Parquet
        or TFRecord file lacks a field, if a record of a shard is not of the shard's language, or if
        a WARC or WET file or a dump of Wikipedia has no pages.
    """
    # Uncompressed: we decompress, so that errors name the file and the line.
    with FileSystems.open(file.path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        if file.english_path is None:
            yield from _READERS[file.format](stream, file)
            return
        with FileSystems.open(
            file.english_path, compression_type=CompressionTypes.UNCOMPRESSED
        ) as english:
            yield from read_moses(stream, english, file)


def _read_text(stream: BinaryIO, file: CorpusFile) -> Iterator[Sentence]:
    for _, line in textio.lines_of_stream(stream, file.path):
        yield Sentence(line.strip(), file.language)


def _read_tsv(stream: BinaryIO, file: CorpusFile) -> Iterator[Pair]:
    for number, line in textio.lines_of_stream(stream, file.path):
        yield Pair(*textio.split_pair(line, file.path, number), file.language)


_READERS = {
    TEXT: _read_text,
    TSV: _read_tsv,
    SHARD: read_shard,
    PARQUET: read_parquet,
    TFRECORD: read_tfrecord,
    WARC: read_warc,
    WET: read_wet,
    WIKIPEDIA: read_wikipedia,
}
