"""Reads corpus files into batches of records. Files, and parts of them, are read in parallel."""

from __future__ import annotations

import collections
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import apache_beam as beam

from beam_pipelines.reading.file_parts import FilePart, divide, open_part, placed
from beam_pipelines.reading.lines import clean_lines, read_moses
from beam_pipelines.reading.parquet import read_parquet
from beam_pipelines.reading.rows import read_json_lines
from beam_pipelines.reading.tfrecord import read_tfrecord
from beam_pipelines.reading.tmx import read_tmx
from beam_pipelines.reading.web import read_web
from beam_pipelines.reading.wikipedia import read_wikipedia
from beam_pipelines.records.records import (
    RECORDS_PER_BATCH,
    Batch,
    NumberedBatch,
    Pair,
    Record,
    Sentence,
    texts_by_language,
    texts_of,
)
from beam_pipelines.reporting.report import BadRecords, take_good
from beam_pipelines.runtime.errors import input_errors_marked
from beam_pipelines.runtime.storage import open_file
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import (
    ALL_FORMATS,
    JSON_LINES,
    PARQUET,
    SHARD,
    TEXT,
    TFRECORD,
    TMX,
    TSV,
    WARC,
    WET,
    WIKIPEDIA,
    ZIP,
    CorpusFile,
    describe,
)
from labse_tf.files.record_kinds import NEIGHBOURS, Neighbours
from labse_tf.files.textio import strip

_IN_ARCHIVES = set(ALL_FORMATS) - {ZIP}


class ReadCorpus(beam.PTransform):
    """Corpus files -> PCollection of `Batch`; any bad record ends the job. See `ReadTolerantly`."""

    def __init__(self, files: Sequence[CorpusFile]) -> None:
        super().__init__()
        self._read = ReadTolerantly(files, 0)

    def expand(self, begin):
        batches, _ = begin | self._read
        return batches


class ReadTolerantly(beam.PTransform):
    """Corpus files -> (PCollection of `Batch`, PCollection of `BadRecords`).

    With `numbered`, the batches are `NumberedBatch`; parts of files are numbered as if they were
    files of their own, in their order. With `normalize`, a form of Unicode such as "NFC", texts are
    brought to it.

    The language of a batch is one of the paper's, unless a file of records in several languages
    contains others: these are passed on, so that the next step can count them.

    Raises:
      InputError: when built without files; when run, if one file has more than `max_bad_records`
        (see `read_file`). The caller must add up those of all files.
    """

    def __init__(
        self,
        files: Sequence[CorpusFile],
        max_bad_records: int,
        *,
        numbered: bool = False,
        normalize: str | None = None,
    ) -> None:
        super().__init__()
        if not files:
            raise InputError("no corpus files to read", remedy="name at least one")
        # Plain tuples: Beam's coder for NamedTuples would look for a schema.
        self._parts = [
            (number, (tuple(part.file), part.start, part.end))
            for number, part in enumerate(divide(files))
        ]
        self._read_file = _ReadFile(max_bad_records, numbered, normalize)

    def expand(self, begin):
        outputs = (
            begin
            | "Files" >> beam.Create(self._parts, reshuffle=False)
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(self._read_file).with_outputs("bad", main="batches")
        )
        return outputs.batches, outputs.bad


class _ReadFile(beam.DoFn):
    def __init__(self, max_bad_records: int, numbered: bool, form: str | None) -> None:
        self._max_bad_records = max_bad_records
        self._numbered = numbered
        self._form = form

    def process(self, element: tuple[int, tuple]) -> Iterator:
        number, (file, start, end) = element
        part = FilePart(CorpusFile(*file), start, end)
        bad = BadRecords.of_file(part.file)
        with input_errors_marked():
            good = take_good(_records_and_errors(part), bad, self._max_bad_records)
            if self._form:
                good = (_normalized(record, self._form) for record in good)
            batches = in_batches(good)
            yield from number_batches(batches, number) if self._numbered else batches
        if bad.number:
            yield beam.pvalue.TaggedOutput("bad", bad)


def _normalized(record: Record, form: str) -> Record:
    texts = (unicodedata.normalize(form, text).strip() for text in texts_of(record))
    return type(record)(*texts, record.language)


def in_batches(records: Iterable[Record]) -> Iterator[Batch]:
    """Yields the records in batches of one language; holds at most one batch per language."""
    batches: dict[str, list[Record]] = collections.defaultdict(list)
    for record in records:
        batch = batches[record.language]
        batch.append(record)
        if len(batch) == RECORDS_PER_BATCH:
            yield Batch(record.language, batch)
            del batches[record.language]
    for language, batch in batches.items():
        yield Batch(language, batch)


def number_batches(batches: Iterable[Batch], file: int) -> Iterator[NumberedBatch]:
    """Yields the batches of the file with the number `file`, with their positions in it."""
    read = collections.Counter()
    for language, records in batches:
        yield NumberedBatch(language, records, file, read[language])
        read[language] += len(records)


def read_texts(files: Iterable[CorpusFile]) -> Iterator[tuple[str, str]]:
    """Yields (language, text) of every sentence and of both sides of every pair in the files.

    Raises:
      InputError: see `read_file`.
    """
    for file in files:
        for record in read_file(file):
            yield from texts_by_language(record)


def read_file(file: CorpusFile) -> Iterator[Record]:
    """Yields the records of one file in its order.

    Raises:
      InputError: if the file is damaged or empty (a shard may be), if a record is invalid or
        contains a NUL byte, or as the reader of its format.
    """
    for record in records_and_errors(file):
        if isinstance(record, InputError):
            raise record
        yield record


def records_and_errors(file: CorpusFile) -> Iterator[Record | InputError]:
    """Like `read_file`, but yields an error in place of a bad record or an unreadable rest."""
    yield from _records_and_errors(FilePart(file))


def _records_and_errors(part: FilePart) -> Iterator[Record | InputError]:
    try:
        for record in _open_and_read(part):
            yield placed(part, record) if isinstance(record, InputError) else record
    except InputError as error:
        yield placed(part, error)


def _open_and_read(part: FilePart) -> Iterator[Record | InputError]:
    file = part.file
    # Beam does not decompress: our readers do, so that errors name the file and the line.
    with open_part(part) as stream:
        if stream is None:
            return
        if file.english_path is not None:
            with open_file(file.english_path) as english:
                yield from read_moses(stream, english, file)
        elif part.start and file.format == TSV:
            with open_file(file.path) as whole:
                first, _ = textio.with_columns(clean_lines(whole, file.path), file.path)
            yield from _read_tsv(stream, file, first)
        else:
            yield from _read(stream, file)


def _read(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    of_neighbours = file.kind == NEIGHBOURS and file.format == TEXT
    return (_read_neighbours if of_neighbours else _READERS[file.format])(stream, file)


def _read_text(stream: BinaryIO, file: CorpusFile) -> Iterator[Sentence | InputError]:
    for _, line in clean_lines(stream, file.path):
        yield line if isinstance(line, InputError) else Sentence(strip(line), file.language)


def _read_neighbours(stream: BinaryIO, file: CorpusFile) -> Iterator[Neighbours | InputError]:
    before = ""
    for _, line in clean_lines(stream, file.path):
        text = ""  # A bad line is a break, as an empty one is.
        if isinstance(line, InputError):
            yield line
        else:
            text = strip(line)
        if before and text:
            yield Neighbours(before, text, file.language)
        before = text


def _read_tsv(
    stream: BinaryIO, file: CorpusFile, first: int | None = None
) -> Iterator[Pair | InputError]:
    lines = clean_lines(stream, file.path)
    if first is None:
        first, lines = textio.with_columns(lines, file.path)
    order = {"first": first, "swapped": file.swapped}
    for number, line in lines:
        record = line
        if not isinstance(line, InputError):
            try:
                record = Pair(*textio.split_pair(line, file.path, number, **order), file.language)
            except InputError as error:
                record = error
        yield record


def _read_zip(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of the corpus files in an archive, in the order of their names."""
    try:
        with zipfile.ZipFile(stream) as archive:
            # Members are named as if the archive were a folder.
            members = {f"{file.path}/{name}": name for name in archive.namelist()}
            found = {describe(path, members.__contains__) for path in members} - {None}
            empty = True
            for one in sorted(found):
                if one.format in _IN_ARCHIVES and (
                    one.kind is None or file.kind in (None, one.kind)
                ):
                    one, empty = one._replace(kind=file.kind or one.kind), False
                    streams = [archive.open(members[path]) for path in one.paths]
                    yield from (read_moses if one.english_path else _read)(*streams, one)
            if empty:
                raise InputError("holds no corpus files", path=file.path, remedy="unpack it")
    except (KeyError, zipfile.BadZipFile, RuntimeError, OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"the archive cannot be read ({error})", path=file.path, remedy="unpack it yourself"
        ) from error


# A reader yields an InputError in place of a single bad record, and raises one if the rest of the
# file cannot be read.
_READERS = {
    TEXT: _read_text,
    TSV: _read_tsv,
    SHARD: read_tfrecord,
    PARQUET: read_parquet,
    JSON_LINES: read_json_lines,
    ZIP: _read_zip,
    TFRECORD: read_tfrecord,
    TMX: read_tmx,
    WARC: read_web,
    WET: read_web,
    WIKIPEDIA: read_wikipedia,
}
