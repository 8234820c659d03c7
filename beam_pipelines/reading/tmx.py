"""Reads TMX, the exchange format of translation memories, a chunk of XML at a time.

A unit (`<tu>`) holds a variant (`<tuv xml:lang="...">`) for each language; its text is in `<seg>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO
from xml.parsers import expat

from beam_pipelines.records.records import ENGLISH, Pair
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import find_code

# The languages of a unit that has fewer than two (ISO 639: undetermined).
UNDETERMINED = "und"

# Elements inside a segment whose content is markup of the original file, not text.
_CODES = frozenset(("bpt", "ept", "it", "ph", "ut"))


def read_tmx(stream: BinaryIO, file: CorpusFile) -> Iterator[Pair]:
    """Yields for each unit a pair of English and each other language, in the order of the file.

    White space in a text is reduced to single spaces. Of several English variants, the first is
    used. Other units are yielded too, so that they can be counted: unsupported codes are kept as
    they are, a unit without English is a pair with the codes of both languages (`de-fr`), and a
    unit in one language has the code `und`.

    Raises:
      InputError: if the file is damaged, is not TMX, has no units, or defines entities, which could
        make its text grow without limit.
    """
    units = _Units(file)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = units.start
    parser.EndElementHandler = units.end
    parser.CharacterDataHandler = units.text
    # External entities are not fetched: expat leaves that to a handler, and none is set.
    parser.EntityDeclHandler = units.refuse_entity
    empty = True
    for chunk in _with_end(textio.chunks_of_stream(stream, file.path)):
        try:
            parser.Parse(chunk or b"", chunk is None)
        except expat.ExpatError as error:
            raise _damaged(expat.ErrorString(error.code), error.lineno, file) from error
        except _EntityError as error:
            raise InputError(
                f"defines the entity '{error}', which a TMX file does not need",
                path=file.path,
                line=parser.CurrentLineNumber,
                remedy="do not trust this file, or remove its entities",
            ) from error
        for pair in units.take():
            empty = False
            yield pair
    if not units.is_tmx:
        raise _damaged("the root element is not <tmx>", 1, file)
    if empty:
        raise InputError("the file has no units", path=file.path, remedy="remove it or fill it")


def _with_end(chunks: Iterator[bytes]) -> Iterator[bytes | None]:
    yield from chunks
    yield None


def _damaged(problem: str, line: int, file: CorpusFile) -> InputError:
    return InputError(
        f"the TMX file cannot be read ({problem})",
        path=file.path,
        line=line,
        remedy="fetch or export it again",
    )


class _EntityError(Exception):
    """The file declares the named entity."""


class _Units:
    """Collects units from expat's events; `take` returns the pairs of those that are complete."""

    def __init__(self, file: CorpusFile) -> None:
        self._file = file
        self._pairs: list[Pair] = []
        self._variants: list[tuple[str, str]] = []
        self._language = ""
        self._pieces: list[str] | None = None  # of the open segment
        self._codes = 0  # number of open elements of `_CODES`
        self.is_tmx = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tmx":
            self.is_tmx = True
        elif name == "tu":
            self._variants = []
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "seg":
            self._pieces = []
        elif name in _CODES and self._pieces is not None:
            self._codes += 1

    def text(self, data: str) -> None:
        if self._pieces is not None and not self._codes:
            self._pieces.append(data)

    def end(self, name: str) -> None:
        if name == "seg" and self._pieces is not None:
            language = find_code(self._language) or self._language.lower() or UNDETERMINED
            self._variants.append((language, " ".join("".join(self._pieces).split())))
            self._pieces = None
            self._codes = 0
        elif name in _CODES and self._codes:
            self._codes -= 1
        elif name == "tu":
            self._pairs += _pairs_of(self._variants)

    def refuse_entity(self, name: str, *_) -> None:
        raise _EntityError(name)

    def take(self) -> list[Pair]:
        pairs, self._pairs = self._pairs, []
        return pairs


def _pairs_of(variants: list[tuple[str, str]]) -> list[Pair]:
    english = next((text for language, text in variants if language == ENGLISH), None)
    others = [(language, text) for language, text in variants if language != ENGLISH]
    if english is not None and others:
        return [Pair(english, text, language) for language, text in others]
    if len(others) > 1:
        (one, source), (other, target) = others[:2]
        return [Pair(source, target, f"{one}-{other}")]
    return [Pair(english or "", others[0][1] if others else "", UNDETERMINED)]
