"""Reads web pages: CommonCrawl's WARC files (HTML) and WET files (the text of HTML pages).

The text of HTML is all of it, or the main content without menus and the like.
"""

from __future__ import annotations

import codecs
import contextlib
import functools
import gzip
import logging
import re
import zlib
from collections.abc import Iterator
from types import ModuleType
from typing import BinaryIO

import regex
import webencodings
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType
from lxml import etree

from beam_pipelines.reading.rows import nul_byte
from beam_pipelines.records import UNDETERMINED, Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import WET, CorpusFile

_HTML = ("text/html", "application/xhtml+xml")
_CHARSET = re.compile(r"""charset\s*=[\s"']*([^\s"';,]+)""", re.IGNORECASE)
# Address, content, and the charset that the server named.
_Page = tuple[str, bytes | InputError, str | None]

# CommonCrawl itself truncates pages at 1 MiB, since 2025 at 5 MiB.
MAX_PAGE_BYTES = 5 << 20

_OPTIONS = {"include_comments": False, "include_tables": True, "favor_recall": True}

# Where a page itself names its encoding; else where XHTML does.
_META = regex.compile(
    rb"""<meta[\s/](?![^>]*(?:name|property)\s*=)[^>]*?charset\s*=[\s"']*([^\s"'/;>]+)"""
    rb"""|^\s*<\?xml[^>]*?encoding\s*=\s*["']\s*([^\s"']+)""",
    regex.IGNORECASE,
)
_COMMENT = regex.compile(rb"<!--.*?(?:-->|$)", regex.DOTALL)
_DECLARED_WITHIN = 4096
_UTF_8 = webencodings.UTF8

# Elements that do not end a line.
INLINE = frozenset(
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em")
    + ("font", "i", "img", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp")
    + ("small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr")
)
_NO_TEXT = frozenset(("head", "iframe", "noscript", "script", "style", "svg", "template"))

# A character that no text has: something was here that separates words.
GAP = "\ufdd1"
# Letters and punctuation of languages without spaces.
NO_SPACES = (
    r"\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{Laoo}\p{Khmr}\p{Mymr}\p{Tibt}"
    r"\p{Block=CJK_Symbols}"
)
_BETWEEN_WORDS = regex.compile(
    rf"(?V1)(?<=[[\p{{L}}\p{{M}}\p{{N}}\p{{Pe}}.,;:!?…،؛؟۔।%]--[{NO_SPACES}]]){GAP}+"
    rf"(?=[[\p{{L}}\p{{N}}\p{{Ps}}¿¡]--[{NO_SPACES}]])"
)
_NOT_TEXT = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
# A text of at least this length does not occur inside another text of the page by chance.
_LONG = 40


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


def close_gaps(text: str) -> str:
    """Replaces each GAP by a space where it is between words that need one, else by nothing."""
    return _BETWEEN_WORDS.sub(" ", text).replace(GAP, "") if GAP in text else text


def main_text(html: bytes, charset: str | None = None) -> str:
    """Returns the main content, one paragraph per line; `charset` is as the server named it."""
    return _trafilatura().extract(decode_html(html, charset), **_OPTIONS) or ""


def main_and_other_lines(html: bytes, charset: str | None = None) -> tuple[list[str], list[str]]:
    """Returns the paragraphs of the main content, and those from elsewhere on the page.

    A text that occurs in both places is main content.
    """
    page = decode_html(html, charset)
    content = _trafilatura().extract(page, **_OPTIONS) or ""
    main_lines = {_NOT_TEXT.sub("", line) for line in content.split("\n")}
    # The library breaks lines where the page has code and the like.
    main_content = _NOT_TEXT.sub("", content)
    main, other = [], []
    # The same code splits both classes into lines, since a model would learn any difference.
    for line in _all_lines(page):
        essence = _NOT_TEXT.sub("", line)
        if not essence:
            continue
        is_main = essence in main_lines or (len(essence) >= _LONG and essence in main_content)
        (main if is_main else other).append(line)
    return main, other


def decode_html(html: bytes, charset: str | None = None) -> str:
    """Decodes a page as browsers do: https://html.spec.whatwg.org/#determining-the-character-encoding.

    The order is: byte order mark, `charset` (the server's), what the page declares, UTF-8, the
    likeliest encoding. A page that is not in its declared encoding, but is UTF-8, is UTF-8.
    """
    encoding = find_encoding(charset) or _declared(html)
    for one in (encoding, _UTF_8):
        if one is not None:
            with contextlib.suppress(UnicodeError):
                return webencodings.decode(html, one, "strict")[0]
    if encoding is None and not html.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _trafilatura().utils.decode_file(html)
    return webencodings.decode(html, encoding or _UTF_8)[0]


def _declared(html: bytes) -> webencodings.Encoding | None:
    head = _COMMENT.sub(b"", html[:_DECLARED_WITHIN])
    found = sorted(_META.finditer(head), key=lambda match: match[1] is None)
    labels = ((match[1] or match[2]).decode("ascii", "replace") for match in found)
    encoding = next(filter(None, map(find_encoding, labels)), None)
    # These bytes could not be read as ASCII if they were UTF-16.
    return _UTF_8 if encoding and encoding.name.startswith("utf-16") else encoding


def find_encoding(label: str | None) -> webencodings.Encoding | None:
    """Returns the encoding that browsers know by this name."""
    encoding = webencodings.lookup(label or "")
    if encoding is None or encoding.name in ("replacement", "x-user-defined"):
        return None
    # The larger one has the same characters in the same places.
    return webencodings.lookup("gb18030") if encoding.name == "gbk" else encoding


def _all_lines(page: str) -> list[str]:
    tree = _trafilatura().load_html(page)
    if tree is None:
        return []
    lines = (" ".join(line.split()) for line in "".join(_walk(tree)).split("\n"))
    return [line for line in lines if line]


def _walk(tree: etree._Element) -> Iterator[str]:
    """Yields the text of a tree in pieces, with line feeds only between blocks."""
    walker = etree.iterwalk(tree, events=("start", "end", "comment", "pi"))
    for event, element in walker:
        if event == "start":
            if element.tag in _NO_TEXT:
                walker.skip_subtree()
            else:
                yield "" if element.tag in INLINE else "\n"
                yield _one_line(element.text)
            continue
        if event == "end" and element.tag not in INLINE:
            yield "\n"
        yield _one_line(element.tail)


def _one_line(text: str | None) -> str:
    return (text or "").replace("\n", " ")


@functools.cache
def _trafilatura() -> ModuleType:
    # Imported here because it takes a second.
    import trafilatura
    import trafilatura.utils

    # It warns about every page without text.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    return trafilatura
