"""Reads web pages: CommonCrawl's WARC files (HTML) and WET files (the text of HTML pages)."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from beam_pipelines.reading.html_text import main_text
from beam_pipelines.reading.rows import nul_byte
from beam_pipelines.records.records import UNDETERMINED, Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import WET, CorpusFile

_HTML = ("text/html", "application/xhtml+xml")
_CHARSET = re.compile(r"""charset\s*=[\s"']*([^\s"';,]+)""", re.IGNORECASE)
# Address, content, and the charset that the server named.
_Page = tuple[str, bytes | InputError, str | None]

# CommonCrawl itself truncates pages at 1 MiB, since 2025 at 5 MiB.
MAX_PAGE_BYTES = 5 << 20


def read_web(stream: BinaryIO, file: CorpusFile) -> Iterator[Document | InputError]:
    """Yields the pages of a WET file with all of their text, of a WARC file with the main text."""
    for address, content, charset in read_pages(stream, file):
        if isinstance(content, InputError):
            yield content
        elif file.format == WET:
            yield _decode(content, address, file)
        else:
            yield Document(main_text(content, charset), UNDETERMINED)


def read_pages(stream: BinaryIO, file: CorpusFile) -> Iterator[_Page]:
    """Yields `(address, content, charset that the server named, or None)` of the pages of a file.

    The content is HTML, in a WET file UTF-8; an InputError in place of what cannot be read.

    Raises:
      InputError: if the file is damaged or has no pages.
    """
    record_type = WarcRecordType.conversion if file.format == WET else WarcRecordType.response
    empty = True
    for record in _read_records(stream, file):
        if record.record_type != record_type:
            continue
        charset = None
        if file.format != WET:
            record.parse_http(auto_decode="none")
            if (record.http_content_type or "").lower() not in _HTML:
                continue
            declared = _CHARSET.search(record.http_headers.get("Content-Type"))
            charset = declared and declared[1]
        empty = False
        address = record.headers.get("WARC-Target-URI") or ""
        yield address, _content(record, address, file), charset
    if empty:
        problem = f"the {file.format.upper()} file has no pages"
        raise InputError(problem, path=file.path, remedy="leave it out")


def _read_records(stream: BinaryIO, file: CorpusFile) -> Iterator[WarcRecord]:
    # FastWARC treats a truncated gzip stream as the end of the file; Python's module raises.
    data = gzip.GzipFile(fileobj=stream) if file.path.endswith(".gz") else stream
    try:
        for record in ArchiveIterator(data, parse_http=False, stream_detect=False):
            if (declared := record.content_length) <= MAX_PAGE_BYTES:
                record.freeze()
                # FastWARC does not report this.
                if record.content_length < declared or "Content-Length" not in record.headers:
                    raise EOFError("the last record is cut off")
            yield record
    except (OSError, EOFError, zlib.error, ValueError) as error:
        problem = f"the {file.format.upper()} file is damaged or truncated ({error})"
        raise InputError(problem, path=file.path, remedy="fetch it again") from error


def _content(record: WarcRecord, address: str, file: CorpusFile) -> bytes | InputError:
    problem = f"the page {address} has more than {MAX_PAGE_BYTES:,} bytes"
    if record.content_length <= MAX_PAGE_BYTES:
        try:
            content = _reader(record).read(MAX_PAGE_BYTES + 1)
            if len(content) <= MAX_PAGE_BYTES:
                return content
        except (OSError, EOFError, ValueError) as error:
            # FastWARC tells the damaged content.
            reason = " ".join(str(error).split())[:100]
            problem = f"the page {address} cannot be decompressed ({reason})"
    return InputError(problem, path=file.path, remedy="leave it out with --max-bad-records")


def _reader(record: WarcRecord) -> BinaryIO:
    """Returns a stream of the page as it was before the server packed it."""
    headers = record.http_headers or {}
    packed = [(name, headers.get(name)) for name in ("Content-Encoding", "Transfer-Encoding")]
    lines = "".join(f"{name}: {value}\r\n" for name, value in packed if value)
    if not lines:
        return record.reader
    # A copy, because after an error FastWARC cannot go on to the archive's next record.
    copy = WarcRecord()
    copy.init_headers(record_type=WarcRecordType.response)
    copy.is_http = True
    head = f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode("latin-1")
    copy.set_bytes_content(head + record.reader.read())
    copy.parse_http(auto_decode="all")
    return copy.reader


def _decode(content: bytes, address: str, file: CorpusFile) -> Document | InputError:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"invalid UTF-8 at byte {error.start} of the page {address}"
        return InputError(problem, path=file.path, remedy="fetch the file again")
    if "\0" in text:
        return nul_byte(file.path, f"the page {address}")
    return Document(text, UNDETERMINED)
