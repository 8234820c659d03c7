"""Reads web pages: CommonCrawl's WARC files (HTML) and WET files (the text of HTML pages)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from beam_pipelines.html_text import main_text
from beam_pipelines.records import UNDETERMINED, Document
from labse_tf.corpus_files import CorpusFile
from labse_tf.errors import InputError

_HTML = ("text/html", "application/xhtml+xml")

# Larger pages are listings and dumps. CommonCrawl itself cuts pages at 1 MiB, 5 MiB since 2025.
_MAX_PAGE_BYTES = 5 << 20


def read_wet(stream: BinaryIO, file: CorpusFile) -> Iterator[Document]:
    """Yields the pages of a WET file, all of their text.

    Raises:
      InputError: if the file is damaged or has no pages.
    """
    for record in _read_records(stream, file, WarcRecordType.conversion):
        yield Document(_content(record).decode("utf-8", errors="replace"), UNDETERMINED)


def read_warc(stream: BinaryIO, file: CorpusFile) -> Iterator[Document]:
    """Yields the main text of the HTML pages of a WARC file.

    Raises:
      InputError: if the file is damaged or has no HTML pages.
    """
    for _, html in read_html(stream, file):
        yield Document(main_text(html), UNDETERMINED)


def read_html(stream: BinaryIO, file: CorpusFile) -> Iterator[tuple[str, bytes]]:
    """Yields `(address, HTML)` of the pages of a WARC file; pages over 5 MiB are passed over.

    Raises:
      InputError: if the file is damaged or has no HTML pages.
    """
    for record in _read_records(stream, file, WarcRecordType.response):
        yield record.headers.get("WARC-Target-URI") or "", _content(record)


def _read_records(
    stream: BinaryIO, file: CorpusFile, record_type: WarcRecordType
) -> Iterator[WarcRecord]:
    # FastWARC takes a gzip stream that is cut off for the end of the file; Python's module tells.
    data = gzip.GzipFile(fileobj=stream) if file.path.endswith(".gz") else stream
    empty = True
    try:
        records = ArchiveIterator(
            data,
            record_types=record_type,
            max_content_length=_MAX_PAGE_BYTES,
            auto_decode="all",
            stream_detect=False,
        )
        for record in records:
            if record.is_http and record.http_content_type not in _HTML:
                continue
            empty = False
            yield record
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise InputError(
            f"the {file.format.upper()} file is damaged or truncated ({error})",
            path=file.path,
            remedy="fetch it again",
        ) from error
    if empty:
        raise InputError(
            f"the {file.format.upper()} file has no pages", path=file.path, remedy="leave it out"
        )


def _content(record: WarcRecord) -> bytes:
    content = record.reader.read()
    if not record.is_http and len(content) < record.content_length:
        raise EOFError("the last record is cut off")
    return content
