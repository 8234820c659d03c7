"""Reads corpus files into batches of records. Files, and parts of them, are read in parallel.

A reader yields an InputError in place of a bad record, and raises one if the rest of the file
cannot be read.
"""

from __future__ import annotations

import collections
import contextlib
import gzip
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import apache_beam as beam

from beam_pipelines.reading.find import FilePart, divide, open_part, placed
from beam_pipelines.reading.rows import (
    clean_lines,
    default_language,
    nul_byte,
    read_json_lines,
    read_parquet,
)
from beam_pipelines.reading.tmx import read_tmx
from beam_pipelines.reading.web import read_web
from beam_pipelines.reading.wikipedia import read_wikipedia
from beam_pipelines.records import (
    RECORDS_PER_BATCH,
    UNDETERMINED,
    Batch,
    NumberedBatch,
    Record,
    build_record,
    decode_example,
    read_records,
    record_type_of,
    texts_by_language,
    texts_of,
)
from beam_pipelines.reporting import BadRecords
from beam_pipelines.runtime.errors import input_errors_marked
from beam_pipelines.runtime.storage import open_file
from labse_tf.errors import InputError
from labse_tf.files import corpus_files, textio
from labse_tf.files.corpus_files import SHARD, TSV, CorpusFile, describe, rows_and_errors
from labse_tf.files.record_kinds import KINDS


@beam.ptransform_fn
def ReadCorpus(begin, files: Sequence[CorpusFile]):
    """Corpus files -> PCollection of `Batch`; any bad record ends the job. See `ReadTolerantly`."""
    batches, _ = begin | ReadTolerantly(files, 0)
    return batches


@beam.ptransform_fn
def ReadTolerantly(
    begin,
    files: Sequence[CorpusFile],
    max_bad_records: int,
    numbered: bool = False,
    normalize: str | None = None,
):
    """Corpus files -> (PCollection of `Batch`, PCollection of `BadRecords`).

    With `numbered`, the batches are `NumberedBatch`; parts of files are numbered as if they were
    files of their own, in their order. Texts are brought to `normalize`, a form of Unicode such as
    "NFC". Records in languages that are not known are passed on, so that the next step counts them.

    Raises:
      InputError: when built without files; when run, if one file has more than `max_bad_records`
        (see `read_file`). The caller must add up those of all files.
    """
    if not files:
        raise InputError("no corpus files to read", remedy="name at least one")
    # Plain tuples: Beam's coder for NamedTuples would look for a schema.
    parts = [(number, tuple(file), *at) for number, (file, *at) in enumerate(divide(files))]
    read = beam.FlatMap(_read_part, max_bad_records, numbered, normalize)
    return (
        begin
        | "Files" >> beam.Create(parts, reshuffle=False)
        | "Spread" >> beam.Reshuffle()
        | "Read" >> read.with_outputs("bad", main="batches")
    )


def _read_part(
    element: tuple[int, tuple, int, int | None],
    max_bad_records: int,
    numbered: bool,
    form: str | None,
) -> Iterator:
    number, file, start, end = element
    part = FilePart(CorpusFile(*file), start, end)
    bad = BadRecords(part.file.language or UNDETERMINED)
    with input_errors_marked():
        good = bad.take_good(records_of_part(part), max_bad_records)
        if form:
            good = (_normalized(record, form) for record in good)
        read = collections.Counter()
        for batch in in_batches(good):
            language, records = batch
            yield NumberedBatch(*batch, number, read[language]) if numbered else batch
            read[language] += len(records)
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


def read_texts(files: Iterable[CorpusFile]) -> Iterator[tuple[str, str]]:
    """Yields (language, text) of every sentence and of both sides of every pair in the files."""
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
    return records_of_part(FilePart(file))


def records_of_part(part: FilePart) -> Iterator[Record | InputError]:
    """Same as `records_and_errors` for a part of a file."""
    file, first = part.file, None
    # Beam does not decompress: our readers do, so that errors name the file and the line.
    with contextlib.ExitStack() as opened:
        try:
            if (stream := opened.enter_context(open_part(part))) is None:
                return
            others = [opened.enter_context(open_file(path)) for path in file.paths[1:]]
            if part.end is not None and file.format == TSV:
                whole = opened.enter_context(open_file(file.path))
                first, _ = textio.with_columns(clean_lines(whole, file.path), file.path)
            for record in _read([stream, *others], file, first):
                yield placed(part, record) if isinstance(record, InputError) else record
        except InputError as error:
            yield placed(part, error)


def _read(
    streams: Sequence[BinaryIO], file: CorpusFile, first: int | None = None
) -> Iterator[Record | InputError]:
    """Yields the records of a file whose `paths` are open; `first` is its first column of text."""
    if file.format in _READERS:
        yield from _READERS[file.format](*streams, file)
        return
    lines = [clean_lines(*one) for one in zip(streams, file.paths, strict=True)]
    record_type, language = KINDS[file.kind].record, file.language
    for _, texts in rows_and_errors(file, lines, first=first):
        yield texts if isinstance(texts, InputError) else record_type(*texts, language)


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
                    empty = False
                    streams = [archive.open(members[path]) for path in one.paths]
                    yield from _read(streams, one._replace(kind=file.kind or one.kind))
            if empty:
                raise InputError("holds no corpus files", path=file.path, remedy="unpack it")
    except (KeyError, zipfile.BadZipFile, RuntimeError, OSError, EOFError, zlib.error) as error:
        problem = f"the archive cannot be read ({error})"
        raise InputError(problem, path=file.path, remedy="unpack it yourself") from error


def _read_tfrecord(stream: BinaryIO, file: CorpusFile) -> Iterator[Record | InputError]:
    """Yields the records of a file; those of a clean shard are all of the shard's language."""

    def unreadable(problem: object) -> InputError:
        problem = f"the TFRecord file cannot be read ({problem})"
        return InputError(problem, path=file.path, remedy="write it again")

    data = gzip.GzipFile(fileobj=stream) if file.path.lower().endswith(".gz") else stream
    record_type, number = None, 0
    try:
        for number, example in enumerate(read_records(data), start=1):
            try:
                features = decode_example(example)
                # All records of a file are of one kind: the first one's, if the name tells none.
                record_type = record_type or record_type_of(file.kind, features)
                record = build_record(record_type, features, default_language(file))
            except ValueError as error:
                yield unreadable(f"record {number}: {error}")
                continue
            if any("\0" in text for text in texts_of(record)):
                yield nul_byte(file.path, f"record {number}")
            elif file.format == SHARD and record.language != file.language:
                yield unreadable(f"record {number} is of language '{record.language}'")
            else:
                yield record
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise unreadable(error) from error
    if number == 0 and file.format != SHARD:
        raise textio.empty_file(file.path)


_READERS = {
    SHARD: _read_tfrecord,
    corpus_files.TFRECORD: _read_tfrecord,
    corpus_files.PARQUET: read_parquet,
    corpus_files.JSON_LINES: read_json_lines,
    corpus_files.ZIP: _read_zip,
    corpus_files.TMX: read_tmx,
    corpus_files.WARC: read_web,
    corpus_files.WET: read_web,
    corpus_files.WIKIPEDIA: read_wikipedia,
}
_IN_ARCHIVES = set(corpus_files.ALL_FORMATS) - {corpus_files.ZIP}
