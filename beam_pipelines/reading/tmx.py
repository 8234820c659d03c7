"""Reads TMX, the exchange format of translation memories, a unit at a time.

A unit (`<tu>`) holds a variant (`<tuv xml:lang="...">`) for each language; its text is in `<seg>`.
"""

from __future__ import annotations

import html.entities
from collections.abc import Iterator
from typing import BinaryIO
from xml.parsers import expat

import regex

from beam_pipelines.reading.gaps import GAP, close_gaps
from beam_pipelines.reading.html_text import BLOCKS, INLINE
from beam_pipelines.reading.tmx_parts import (
    LAST,
    MAX_UNIT,
    PLAIN_UNIT,
    TOO_LONG,
    UNDECODED,
    UNIT,
    UNITS,
    Frame,
    Splitter,
    decode,
)
from beam_pipelines.records.records import ENGLISH, Pair
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import find_code

# The languages of a unit that has fewer than two (ISO 639: undetermined).
UNDETERMINED = "und"

# Elements inside a segment whose content is markup of the original file, not text: in pairs around
# a text, or alone in place of something.
_PAIRED = ("bpt", "ept")
_CODES = frozenset((*_PAIRED, "it", "ph", "ut"))
# The markup, HTML or RTF: whether it formats characters, or separates words.
_TAG = regex.compile(r"\s*</?([a-z][a-z0-9]*)(?![\w-])", regex.IGNORECASE)
_FORMATS = frozenset(INLINE - {"img"} | {"cf", "g"})
_RTF = regex.compile(r"\s*(?:\{?\\|\}\s*$)")
_RTF_BREAK = regex.compile(r"\\(?:par|line|tab|page|cell|row|pict|[nrt])\b")
_FORMAT_TYPES = frozenset(("bold", "color", "dulined", "font", "italic", "link", "scap", "ulined"))
_ENTITY = regex.compile(r"<!\[CDATA\[.*?]]>|<!--.*?-->|&(\w+;)", regex.DOTALL)
_UNDEFINED_ENTITY = expat.errors.codes[expat.errors.XML_ERROR_UNDEFINED_ENTITY]


def read_tmx(stream: BinaryIO, file: CorpusFile) -> Iterator[Pair | InputError]:
    """Yields for each unit a pair of English and each other language, in the order of the file.

    White space in a text is reduced to single spaces. Of several English variants, the first is
    used. Other units are yielded too, so that they can be counted: unsupported codes are kept as
    they are, a unit without English is a pair with the codes of both languages (`de-fr`), and a
    unit in one language has the code `und`. A damaged unit is replaced by an InputError.

    Raises:
      InputError: if the file is truncated, is not TMX, has no units, is in an unknown encoding, or
        defines entities, which could make its text grow without limit.
    """
    frame, splitter = Frame(file.path), Splitter()
    chunks = textio.chunks_of_stream(stream, file.path)
    empty = True
    for kind, text in splitter.split(decode(chunks, file.path)):
        if kind == UNIT:
            yield from _read_unit(text, splitter.prefix, frame)
        elif kind == UNITS:
            yield from _read_units(text, frame)
        elif kind == TOO_LONG:
            yield frame.damaged("unit", f"more than {MAX_UNIT:,} characters", frame.line)
            frame.skip(text)
        else:
            error = frame.feed(text, is_last=kind == LAST)
            if error is None:
                continue
            yield error
        empty = False
    if empty:
        raise InputError("the file has no units", path=file.path, remedy="remove it or fill it")


def _read_units(text: str, frame: Frame) -> Iterator[Pair | InputError]:
    try:
        pairs = _Units("").parse(f"<body>{text}</body>")
    except (expat.ExpatError, UnicodeEncodeError):
        # One of them is damaged.
        frame.skip(text[: text.index("<")])
        for unit in PLAIN_UNIT.findall(text):
            yield from _read_unit(unit, "", frame)
    else:
        yield from pairs
        frame.skip(text)


def _read_unit(text: str, prefix: str, frame: Frame) -> Iterator[Pair | InputError]:
    try:
        yield from _Units(prefix).parse(text.rstrip())
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        yield frame.damaged("unit", problem, frame.line + error.lineno - 1)
    except UnicodeEncodeError as error:
        line = frame.line + text.count("\n", 0, error.start)
        yield frame.damaged("unit", UNDECODED, line)
    frame.skip(text)


class _Units:
    """Collects the pairs of units from expat's events."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._pairs: list[Pair] = []
        self._variants: list[tuple[str, str]] = []
        self._language = ""
        self._pieces: list[str] | None = None  # of the open segment
        self._code: list[str] = []  # content of the open one of `_CODES`
        self._depth = 0  # number of open elements of `_CODES`
        self._type = ""

    def parse(self, text: str) -> list[Pair]:
        """Returns the pairs of all units; raises ExpatError or UnicodeEncodeError."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        try:
            parser.Parse(text, True)
        except expat.ExpatError as error:
            resolved = _ENTITY.sub(_resolve, text) if error.code == _UNDEFINED_ENTITY else text
            if resolved == text:
                raise
            return _Units(self._prefix).parse(resolved)
        return self._pairs

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.removeprefix(self._prefix)
        if name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "seg":
            self._pieces = []
        elif self._pieces is None:
            return
        elif name in _CODES:
            self._depth += 1
            if self._depth == 1:
                self._code, self._type = [], attributes.get("type", "")
        elif name == "x" or name in BLOCKS:
            self._text(GAP)

    def _text(self, data: str) -> None:
        if self._pieces is not None:
            (self._code if self._depth else self._pieces).append(data)

    def _end(self, name: str) -> None:
        name = name.removeprefix(self._prefix)
        if name == "tu":
            self._pairs += _pairs_of(self._variants)
            self._variants = []
        elif self._pieces is None:
            return
        elif name == "seg":
            language = find_code(self._language) or self._language.lower() or UNDETERMINED
            text = close_gaps("".join(self._pieces))
            self._variants.append((language, " ".join(text.split())))
            self._pieces = None
        elif name in _CODES:
            self._depth -= 1
            if not self._depth and _separates(name, self._type, "".join(self._code)):
                self._pieces.append(GAP)
        elif name in BLOCKS:
            self._text(GAP)


def _separates(name: str, type_: str, code: str) -> bool:
    """Whether an element that stands between two words is no formatting inside one."""
    tag = _TAG.match(code)
    if (tag and tag[1].lower() in BLOCKS) or _RTF_BREAK.search(code):
        return True
    formats = tag[1].lower() in _FORMATS if tag else _RTF.match(code) or type_ in _FORMAT_TYPES
    return name not in _PAIRED and not formats


def _resolve(match: regex.Match) -> str:
    """Returns an entity of HTML as numbers; all else as it is."""
    characters = html.entities.html5.get(match[1] or "")
    return "".join(f"&#{ord(one)};" for one in characters) if characters else match[0]


def _pairs_of(variants: list[tuple[str, str]]) -> list[Pair]:
    english = next((text for language, text in variants if language == ENGLISH), None)
    others = [(language, text) for language, text in variants if language != ENGLISH]
    if english is not None and others:
        return [Pair(english, text, language) for language, text in others]
    if len(others) > 1:
        (one, source), (other, target) = others[:2]
        return [Pair(source, target, f"{one}-{other}")]
    return [Pair(english or "", others[0][1] if others else "", UNDETERMINED)]
