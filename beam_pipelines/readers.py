"""Reads corpus files into batches of records. A file is one element: files are read in parallel."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from beam_pipelines import tfrecords
from beam_pipelines.errors import input_errors_marked
from beam_pipelines.records import Batch, Pair, Record, Sentence, decode_record
from labse_tf import textio
from labse_tf.corpus_files import MONOLINGUAL, CorpusFile
from labse_tf.errors import InputError
from labse_tf.languages import find_code

# Small enough that a batch of long paragraphs fits in memory many times over, large enough that
# Beam's cost a step does not count.
RECORDS_PER_BATCH = 1000


class ReadCorpus(beam.PTransform):
    """Corpus files -> PCollection of `Batch`.

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
        file = CorpusFile(*element)
        with input_errors_marked():
            for records in _in_lists(read_file(file), RECORDS_PER_BATCH):
                yield Batch(file.language, records)


def _in_lists(records: Iterable[Record], size: int) -> Iterator[list[Record]]:
    records = iter(records)
    while batch := list(itertools.islice(records, size)):
        yield batch


def read_file(file: CorpusFile) -> Iterator[Record]:
    """Yields the records of one file in its order.

    Raises:
      InputError: if the file is damaged, empty (a shard may be) or not UTF-8, if a TSV line lacks
        one of its sides, or if a record of a shard is not of the shard's language.
    """
    # Uncompressed: we decompress, so that errors name the file and the line.
    with FileSystems.open(file.path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        if file.format == "tfrecord":
            yield from _read_shard(stream, file)
        elif file.format == "tsv":
            for number, line in textio.lines_of_stream(stream, file.path):
                yield Pair(*textio.split_pair(line, file.path, number), file.language)
        else:
            for _, line in textio.lines_of_stream(stream, file.path):
                yield Sentence(line.strip(), file.language)


def _read_shard(stream: BinaryIO, file: CorpusFile) -> Iterator[Record]:
    record_type = Sentence if file.kind == MONOLINGUAL else Pair
    data = gzip.GzipFile(fileobj=stream) if file.path.endswith(".gz") else stream
    try:
        for number, example in enumerate(tfrecords.read_records(data), start=1):
            record = decode_record(example, record_type, file.language)
            if find_code(record.language) != file.language:
                raise ValueError(f"record {number} is of language '{record.language}'")
            yield record._replace(language=file.language)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"the shard cannot be read ({error})", path=file.path, remedy="write it again"
        ) from error
