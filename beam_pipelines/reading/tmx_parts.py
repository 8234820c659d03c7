"""Splits a TMX file into its units and what is around them, so that damage stays where it is."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from xml.parsers import expat

from beam_pipelines.reading.html_text import WIDER_CHARSETS
from labse_tf.errors import InputError
from labse_tf.files import textio

# What a part of a file is.
AROUND, UNIT, UNITS, TOO_LONG, LAST = "around", "unit", "units", "too long", "last"
# Characters; bounds the memory that a unit takes.
MAX_UNIT = textio.MAX_LINE_BYTES

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)["']""")
_START = b"<?xml"
# Python's text encodings that are no character sets.
_NO_CHARSETS = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")
UNDECODED = "bytes that do not fit the file's encoding"
# In place of such bytes stands a character that cannot be encoded, so that expat refuses it.
codecs.register_error("labse_tf.undecoded", lambda error: ("\udcff", error.end))

_TOKEN = re.compile(r"<(?:(!--|!\[CDATA\[|\?)|(/?)([\w.-]+:)?(tu|header|body|tmx)(?=[\s/>]))")
# The end of what a token opens, or the same token again: then the first has no end.
_ENDS = {
    "!--": re.compile("-->|<!--"),
    "![CDATA[": re.compile(r"]]>|<!\[CDATA\["),
    "?": re.compile(r"\?>|<\?"),
}
# Units without any of these or another unit inside, as nearly all are: faster than tag by tag.
PLAIN_UNIT = re.compile(r"<tu(?=[\s>])(?:[^<]+|<(?!/?tu[\s/>]|[!?]))*+</tu>\s*")
_PLAIN_UNITS = re.compile(rf"\s*(?:{PLAIN_UNIT.pattern})++")
_LONGEST_NAME = 100
_REST_OF_TAG = re.compile(r"""(?:[^>"']|"[^"]*"|'[^']*')*+>""")


def decode(chunks: Iterator[bytes], path: str) -> Iterator[str]:
    """Yields the text of an XML file, with line feeds, by its byte order mark or its declaration.

    Raises:
      InputError: if its declaration names no known character set.
    """
    head = b""
    while b">" not in head and len(head) < 1 << 10 and (chunk := next(chunks, b"")):
        head += chunk
    decoder = codecs.getincrementaldecoder(_find_encoding(head, path))("labse_tf.undecoded")
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    yield lines.decode(head)
    yield from map(lines.decode, chunks)
    yield lines.decode(b"", final=True)


def _find_encoding(head: bytes, path: str) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return encoding
    declared = _DECLARED.match(head)
    if declared is None:
        return "utf-8"
    try:
        name = declared[1].decode("ascii")
        codec = re.sub(r"(?i)^windows-(?=\d)", "cp", name)
        codec = codecs.lookup(codec).name
        # No UTF-16 file has a legible declaration: one without this encoding was converted.
        codec = "utf-8" if codec.startswith(("utf-16", "utf-32")) else codec
        # Some codecs are no encodings, and some encodings have another "<".
        if codec not in _NO_CHARSETS and _START.decode(codec) == _START.decode():
            return codec if codec == "ascii" else WIDER_CHARSETS.get(codec, codec)
    except (LookupError, ValueError):
        name = declared[1].decode("ascii", "backslashreplace")
    raise InputError(
        f"the encoding '{name}' is unknown",
        path=path,
        line=1 + head.count(b"\n", 0, declared.start(1)),
        remedy="convert the file to UTF-8, and say so in its declaration",
    )


class Splitter:
    """Splits a file into units and what is around them.

    A unit ends with its end tag, or before the next unit. There are none in comments, CDATA
    sections, processing instructions and the header.

    Attributes:
      prefix: that of the elements' names, with its colon, mostly ""; None before the first.
    """

    def __init__(self) -> None:
        self.prefix: str | None = None
        self._buffer = ""
        self._begin = 0  # of the open part
        self._position = 0  # before which all tags were found
        self._in_unit = self._in_header = self._was_too_long = False

    def split(self, texts: Iterator[str]) -> Iterator[tuple[str, str]]:
        """Yields `(kind, text)` of the parts. The last one may begin with a unit that is cut off.

        Of a unit that is too long, the line feeds follow as parts that are around units.
        """
        for text in texts:
            self._buffer = self._buffer[self._begin :] + text
            self._position -= self._begin
            self._begin = 0
            yield from self._parts(final=False)
            # So that the buffer does not grow without limit.
            if len(self._buffer) - self._begin > MAX_UNIT:
                yield self._cut(self._position, is_too_long=True)
        yield from self._parts(final=True)
        _, text = self._cut(len(self._buffer))
        yield LAST, text

    def _parts(self, *, final: bool) -> Iterator[tuple[str, str]]:
        while True:
            may_run = self.prefix == "" and not (self._in_unit or self._in_header)
            run = may_run and _PLAIN_UNITS.match(self._buffer, self._begin)
            if run:
                self._begin = self._position = run.end()
                yield UNITS, run[0]
            if (tag := self._next_tag(final)) is None:
                break
            name, start, end, is_end, is_empty = tag
            if name == "tu" and not self._in_header:
                if not is_end:
                    yield self._cut(start)
                    self._in_unit, self._was_too_long = True, False
                if self._in_unit and (is_end or is_empty):
                    yield self._cut(end)
                    self._in_unit = self._was_too_long = False
            elif name != "tu" and not self._in_unit:
                self._in_header = name == "header" and not is_end and not is_empty

    def _next_tag(self, final: bool) -> tuple[str, int, int, bool, bool] | None:
        buffer = self._buffer
        while token := _TOKEN.search(buffer, self._position):
            opened, slash, prefix, name = token.groups()
            end = _ENDS[opened].search(buffer, token.end()) if opened else None
            following = -1 if opened else buffer.find("<", token.end())
            if not end and following < 0 and not final and len(buffer) - token.start() <= MAX_UNIT:
                self._position = token.start()
                return None
            # What has no end is passed over: expat will complain of this part alone.
            self._position = end.end() if end and end[0][0] != "<" else token.end()
            if self.prefix is None and name != "tu" and not opened:
                self.prefix = prefix or ""
            if name and (prefix or "") == self.prefix:
                following = len(buffer) if following < 0 else following
                rest = _REST_OF_TAG.match(buffer, token.end(), following)
                self._position = rest.end() if rest else following
                is_empty = rest is not None and rest[0].endswith("/>")
                return name, token.start(), self._position, bool(slash), is_empty
        # The name of the last tag may be cut off.
        last = buffer.rfind("<", max(self._position, len(buffer) - _LONGEST_NAME))
        self._position = len(buffer) if last < 0 else last
        return None

    def _cut(self, end: int, *, is_too_long: bool = False) -> tuple[str, str]:
        text = self._buffer[self._begin : end]
        self._begin = end
        if self._was_too_long:
            return AROUND, "\n" * text.count("\n")
        if not self._in_unit:
            return AROUND, text
        self._was_too_long = is_too_long or len(text) > MAX_UNIT
        return TOO_LONG if self._was_too_long else UNIT, text


class Frame:
    """What is around the units, checked as a document of its own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open: list[str] = []
        self._blank = 0  # line feeds that the parser was not given yet
        self._line = 1  # in which it is
        self._start()

    @property
    def line(self) -> int:
        """The line, from 1, in which the next part begins."""
        return self._line + self._blank

    def skip(self, text: str) -> None:
        """Passes over a unit."""
        self._blank += text.count("\n")

    def feed(self, text: str, *, is_last: bool = False) -> InputError | None:
        """Returns the error of a damaged part; what follows is checked as if it were whole.

        Raises:
          InputError: if the root element is not <tmx>, or an entity is defined.
        """
        if not is_last and not text.strip():
            self.skip(text)
            return None
        text = "\n" * self._blank + text
        around = self._open.copy()
        problem = None
        try:
            self._parser.Parse(text, is_last)
        except expat.ExpatError as error:
            problem = expat.ErrorString(error.code), self._first + error.lineno - 1
        except UnicodeEncodeError as error:
            problem = UNDECODED, self._line + text.count("\n", 0, error.start)
        is_tmx = bool(self._open or around)
        self._line += text.count("\n")
        self._blank = 0
        if problem is None:
            return None
        if not is_tmx:
            raise self.damaged("TMX file", *problem)
        self._start()
        self._parser.Parse("".join(f"<{name}>" for name in around or ("tmx", "body")))
        return self.damaged("TMX file", *problem)

    def damaged(self, what: str, problem: str, line: int) -> InputError:
        """Returns the error for a part of the file."""
        return InputError(
            f"the {what} cannot be read ({problem})",
            path=self._path,
            line=line,
            remedy="correct it, or fetch or export the file again",
        )

    def _start(self) -> None:
        self._first = self._line
        self._open = []
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._check_root
        self._parser.EndElementHandler = lambda name: self._open.pop()
        # External entities are not fetched: expat leaves that to a handler, and none is set.
        self._parser.EntityDeclHandler = self._refuse_entity
        # Entities of HTML in the header are no damage.
        self._parser.UseForeignDTD(True)

    def _check_root(self, name: str, attributes: dict[str, str]) -> None:
        if not self._open and name.rpartition(":")[2] != "tmx":
            line = self._first + self._parser.CurrentLineNumber - 1
            raise self.damaged("TMX file", "the root element is not <tmx>", line)
        self._open.append(name)

    def _refuse_entity(self, name: str, *_) -> None:
        raise InputError(
            f"defines the entity '{name}', which a TMX file does not need",
            path=self._path,
            line=self._first + self._parser.CurrentLineNumber - 1,
            remedy="do not trust this file, or remove its entities",
        )
