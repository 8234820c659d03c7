"""Reads web pages: CommonCrawl's WARC files (HTML) and WET files (the text of HTML pages)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from beam_pipelines.reading.clean_lines import nul_byte
from beam_pipelines.reading.html_text import main_text
from beam_pipelines.records.records import UNDETERMINED, Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile

_HTML = ("text/html", "application/xhtml+xml")

# CommonCrawl itself truncates pages at 1 MiB, since 2025 at 5 MiB.
MAX_PAGE_BYTES = 5 << 20


def read_wet(stream: BinaryIO, file: CorpusFile) -> Iterator[Document | InputError]:
    """Yields the pages of a WET file with all of their text.

    A page that cannot be read is replaced by an InputError.

    Raises:
      InputError: if the file is damaged or has no pages.
    """
    for address, content in _read_pages(stream, file, WarcRecordType.conversion):
        yield content if isinstance(content, InputError) else _decode(content, address, file)


def read_warc(stream: BinaryIO, file: CorpusFile) -> Iterator[Document | InputError]:
    """Yields the main text of the HTML pages of a WARC file.

    A page that cannot be read is replaced by an InputError.

    Raises:
      InputError: if the file is damaged or has no HTML pages.
    """
    for _, html in read_html(stream, file):
        if isinstance(html, InputError):
            yield html
        else:
            yield Document(main_text(html), UNDETERMINED)


def read_html(stream: BinaryIO, file: CorpusFile) -> Iterator[tuple[str, bytes | InputError]]:
    """Yields `(address, HTML)` of the pages of a WARC file.

    The HTML of a page that cannot be read is replaced by an InputError.

    Raises:
      InputError: if the file is damaged or has no HTML pages.
    """
    yield from _read_pages(stream, file, WarcRecordType.response)


def _read_pages(
    stream: BinaryIO, file: CorpusFile, record_type: WarcRecordType
) -> Iterator[tuple[str, bytes | InputError]]:
    empty = True
    for record in _read_records(stream, file):
        if record.record_type != record_type:
            continue
        if record_type == WarcRecordType.response and not _parse_html(record):
            continue
        empty = False
        address = record.headers.get("WARC-Target-URI") or ""
        yield address, _content(record, address, file)
    if empty:
        raise InputError(
            f"the {file.format.upper()} file has no pages", path=file.path, remedy="leave it out"
        )


def _read_records(stream: BinaryIO, file: CorpusFile) -> Iterator[WarcRecord]:
    # FastWARC treats a truncated gzip stream as the end of the file; Python's module raises.
    data = gzip.GzipFile(fileobj=stream) if file.path.endswith(".gz") else stream
    records = iter(ArchiveIterator(data, parse_http=False, stream_detect=False))
    while True:
        # Around the library calls only: an exception of the caller is not damage.
        try:
            record = next(records, None)
            if record is not None and record.content_length <= MAX_PAGE_BYTES:
                _check_length(record)
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise InputError(
                f"the {file.format.upper()} file is damaged or truncated ({error})",
                path=file.path,
                remedy="fetch it again",
            ) from error
        if record is None:
            return
        yield record


def _check_length(record: WarcRecord) -> None:
    """Reads the record; raises EOFError if it is cut off, which FastWARC does not report."""
    declared = record.content_length
    record.freeze()
    if record.content_length < declared or "Content-Length" not in record.headers:
        raise EOFError("the last record is cut off")


def _parse_html(record: WarcRecord) -> bool:
    """Whether it is an HTML page; if so, its reader then returns the HTML, decompressed."""
    record.parse_http(auto_decode="all")
    return record.http_content_type in _HTML


def _content(record: WarcRecord, address: str, file: CorpusFile) -> bytes | InputError:
    problem = f"the page {address} has more than {MAX_PAGE_BYTES:,} bytes"
    if record.content_length <= MAX_PAGE_BYTES:
        try:
            content = record.reader.read(MAX_PAGE_BYTES + 1)
            if len(content) <= MAX_PAGE_BYTES:
                return content
        except (OSError, EOFError, ValueError) as error:
            problem = f"the page {address} cannot be decompressed ({error})"
    return InputError(problem, path=file.path, remedy="leave it out with --max-bad-records")


def _decode(content: bytes, address: str, file: CorpusFile) -> Document | InputError:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        return InputError(
            f"invalid UTF-8 at byte {error.start} of the page {address}",
            path=file.path,
            remedy="fetch the file again",
        )
    if "\0" in text:
        return nul_byte(file.path, f"the page {address}")
    return Document(text, UNDETERMINED)
