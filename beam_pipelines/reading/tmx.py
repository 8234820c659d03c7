"""Reads TMX, the exchange format of translation memories, a unit at a time.

A unit (`<tu>`) holds a variant (`<tuv xml:lang="...">`) for each language; its text is in `<seg>`.
The file is split into units before XML is parsed, so that damage stays inside of one.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from html.entities import html5
from itertools import chain
from typing import BinaryIO
from xml.etree import ElementTree
from xml.parsers import expat

import regex

from beam_pipelines.reading.web import GAP, INLINE, close_gaps, find_encoding
from beam_pipelines.records import ENGLISH, UNDETERMINED, Pair
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import find_code

# Elements inside a segment whose content is markup of the original file, not text: in pairs around
# a text, or alone in place of something.
_PAIRED, _ALONE = ("bpt", "ept"), ("it", "ph", "ut")
# Markup in HTML or RTF that separates words, and markup that formats characters.
_BREAK = regex.compile(r"(?i)\s*</?(?:br|p|div|li|t[dhr]|h[\dr])\b|\\(?:par|line|tab|page|[nrt])\b")
_FORMAT = regex.compile(rf"(?i)\s*</?(?:{'|'.join(INLINE - {'img'})}|cf|g)\b|\s*(?:\{{?\\|\}}\s*$)")
_FORMAT_TYPES = ("bold", "color", "dulined", "font", "italic", "link", "scap", "ulined")

_DECLARED = regex.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)["']""")
_BYTE_ORDERS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}
# In place of bytes that do not decode: a character that expat is not given.
codecs.register_error("labse_tf.undecoded", lambda error: ("\udcff", error.end))

_UNIT, _AROUND, _TOO_LONG, _LAST = "unit", "around", "too long", "last"


def _pattern(or_end: str) -> regex.Pattern:
    """Finds units, and comments and the like, which have none inside."""
    opaque = "|".join(
        rf"{start}(?>.*?(?={end}|{start}|\Z))(?:{end}{or_end})"
        for start, end in (("<!--", "-->"), (r"<!\[CDATA\[", "]]>"), (r"<\?", r"\?>"))
    )
    empty = r"""(?:\s(?:[^<>"'/]|/(?!>)|"[^<"]*"|'[^<']*')*+)?/>"""
    # So many at once that the library keeps few of its steps in memory.
    text = r"(?>(?:[^<]++|<(?![!?]|/?tu[\s/>])){1,10000})"
    # A unit ends with its end tag, or before the next one.
    whole = rf"(?=[\s>])(?:{text}|{opaque}|<[!?])*+(?:</tu\s*+>|(?=<)|(?P<cut>\Z))"
    return regex.compile(f"{opaque}|(?P<unit><tu(?:{empty}|{whole}))", regex.DOTALL)


_PARTS, _LAST_PARTS = _pattern(r"|\Z"), _pattern("")
# Nearly all units are like this: they are found, and parsed, many at a time.
_PLAIN_UNIT = re.compile(r"<tu[\s>][^<]*(?:<(?![!?]|/?tu[\s/>])[^<]*)*</tu>\s*")
_PLAIN_UNITS = re.compile(rf"\s*(?:{_PLAIN_UNIT.pattern})+")
_FIRST = regex.compile(r"<!ENTITY\s+(?:%\s+)?([^\s>]+)|<([\w:.-]+)")
_OF_UNIT = regex.compile(r"</?(?:tu|tuv|seg)(?=[\s/>])")


def read_tmx(stream: BinaryIO, file: CorpusFile) -> Iterator[Pair | InputError]:
    """Yields for each unit a pair of English and each other language, in the order of the file.

    White space in a text is reduced to single spaces. Of several English variants, the first is
    used. Other units are yielded too, so that they can be counted: unsupported codes are kept as
    they are, a unit without English is a pair with the codes of both languages (`de-fr`), and a
    unit in one language has the code `und`. A damaged unit is replaced by an InputError.

    Raises InputError if the file is not TMX, has no units, an unknown encoding, or entities of its
    own, which could make its text grow without limit.
    """
    line, is_tmx, empty = 1, False, True
    for kind, text in _split(_decode(textio.chunks_of_stream(stream, file.path), file)):
        is_tmx = is_tmx or _is_tmx(text, line, file)
        found = _read_part(kind, text, line, file)
        yield from found
        empty = empty and not found
        line += text.count("\n")
    if empty:
        raise InputError("the file has no units", path=file.path, remedy="remove it or fill it")


def _is_tmx(text: str, line: int, file: CorpusFile) -> bool:
    """Whether the text has the root element; raises InputError if it has another one."""
    first = _FIRST.search(text)
    line += text.count("\n", 0, first.start()) if first else 0
    if first and first[1]:
        problem = f"defines the entity '{first[1]}', which a TMX file does not need"
        remedy = "do not trust this file, or remove its entities"
        raise InputError(problem, path=file.path, line=line, remedy=remedy)
    if first and first[2] != "tmx":
        raise _damaged("the root element is not <tmx>", line, file)
    return bool(first)


def _damaged(problem: str, line: int, file: CorpusFile) -> InputError:
    remedy = "correct it, or fetch or export it again"
    problem = f"the TMX file cannot be read ({problem})"
    return InputError(problem, path=file.path, line=line, remedy=remedy)


def _read_part(kind: str, text: str, line: int, file: CorpusFile) -> list[Pair | InputError]:
    if kind == _UNIT:
        found = _parse(f"<body>{text.rstrip()}</body>", line, file)
        if not (isinstance(found[0], InputError) and _PLAIN_UNITS.fullmatch(text)):
            return found
        # One of them is damaged.
        found, line = [], line + text.count("\n", 0, text.index("<"))
        for unit in _PLAIN_UNIT.findall(text):
            found += _parse(unit.rstrip(), line, file)
            line += unit.count("\n")
        return found
    if kind == _TOO_LONG:
        line += text.count("\n", 0, max(0, text.find("<")))
        problem = f"more than {textio.MAX_LINE_BYTES:,} characters without the end of a unit"
        return [_damaged(problem, line, file)]
    if lost := _OF_UNIT.search(text):
        return [_damaged("mismatched tag", line + text.count("\n", 0, lost.start()), file)]
    if kind == _LAST and "</tmx" not in text:
        return [_damaged("no element found", line + text.count("\n"), file)]
    return []


def _split(texts: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yields `(kind, text)` of the parts of a file; of what is skipped, the line feeds."""
    buffer, is_cut = "", False
    for text, is_last in chain(((text, False) for text in texts), [("", True)]):
        buffer, done = buffer + text, 0
        while True:
            if units := _PLAIN_UNITS.match(buffer, done):
                yield _UNIT, units[0]
                done = units.end()
            is_full = len(buffer) - done > textio.MAX_LINE_BYTES
            match = (_LAST_PARTS if is_last or is_full else _PARTS).search(buffer, done)
            if match is None or (match.end() == len(buffer) and not is_last):
                break  # It may go on.
            yield _AROUND, buffer[done : match.start()]
            yield (_UNIT, match[0]) if match["unit"] else (_AROUND, "\n" * match[0].count("\n"))
            done, is_cut = match.end(), match["cut"] is not None
        buffer = buffer[done:]
        if len(buffer) > textio.MAX_LINE_BYTES:
            yield _TOO_LONG, buffer
            return
    if not is_cut:
        yield _LAST, buffer


def _decode(chunks: Iterator[bytes], file: CorpusFile) -> Iterator[str]:
    """Yields the text, with line feeds, by its byte order mark or its declaration."""
    head = next(chunks, b"")
    decoder = codecs.getincrementaldecoder(_find_encoding(head, file))("labse_tf.undecoded")
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    yield from map(lines.decode, chain([head], chunks))
    yield lines.decode(b"", final=True)


def _find_encoding(head: bytes, file: CorpusFile) -> str:
    for mark, encoding in _BYTE_ORDERS.items():
        if head.startswith(mark):
            return encoding
    declared = _DECLARED.match(head)
    if declared is None:
        return "utf-8"
    name = declared[1].decode("ascii", "backslashreplace")
    if found := find_encoding(name):
        # A legible declaration is not in UTF-16.
        codec = found.codec_info.name
        # Text that is more than ASCII is not in windows-1252, as browsers assume.
        is_utf_8 = codec.startswith("utf-16") or name.lower().endswith("ascii")
        return "utf-8" if is_utf_8 else codec
    line = 1 + head.count(b"\n", 0, declared.start(1))
    remedy = "convert the file to UTF-8, and say so in its declaration"
    raise InputError(f"the encoding '{name}' is unknown", path=file.path, line=line, remedy=remedy)


def _parse(text: str, line: int, file: CorpusFile) -> list[Pair | InputError]:
    """Returns the pairs of one or more units, or an error alone."""
    tree = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = tree.start, tree.end
    parser.CharacterDataHandler = tree.data
    parser.SkippedEntityHandler = lambda name, _: tree.data(html5[f"{name};"])
    try:
        # A file of definitions, which is not read, makes entities possible: those of HTML.
        parser.Parse('<!DOCTYPE tmx SYSTEM "">', False)
        parser.Parse(text, True)
        return [pair for unit in tree.close().iter("tu") for pair in _pairs_of(unit)]
    except UnicodeEncodeError as error:
        line += text.count("\n", 0, error.start)
        return [_damaged("bytes that are not in its encoding", line, file)]
    except RecursionError:
        return [_damaged("elements nested too deeply", line, file)]
    except KeyError:
        return [_damaged("undefined entity", line + parser.CurrentLineNumber - 1, file)]
    except expat.ExpatError as error:
        return [_damaged(expat.ErrorString(error.code), line + error.lineno - 1, file)]


def _pairs_of(unit: ElementTree.Element) -> list[Pair]:
    variants = []
    for variant in unit.iter("tuv"):
        code = variant.get("xml:lang") or variant.get("lang") or ""
        for segment in variant.iter("seg"):
            text = " ".join(close_gaps("".join(_pieces(segment))).split())
            variants.append((find_code(code) or code.lower() or UNDETERMINED, text))
    english = next((text for language, text in variants if language == ENGLISH), None)
    others = [(language, text) for language, text in variants if language != ENGLISH]
    if english is not None and others:
        return [Pair(english, text, language) for language, text in others]
    if len(others) > 1:
        (one, source), (other, target) = others[:2]
        return [Pair(source, target, f"{one}-{other}")]
    return [Pair(english or "", others[0][1] if others else "", UNDETERMINED)]


def _pieces(element: ElementTree.Element) -> Iterator[str]:
    """Yields the text in an element, with a GAP for each code that separates words."""
    yield element.text or ""
    for part in element:
        if part.tag in _PAIRED or part.tag in _ALONE:
            code = "".join(part.itertext())
            formats = part.tag in _PAIRED or part.get("type") in _FORMAT_TYPES
            if _BREAK.search(code) or not (formats or _FORMAT.match(code)):
                yield GAP
        else:
            if part.tag in ("br", "x"):
                yield GAP
            yield from _pieces(part)
        yield part.tail or ""
