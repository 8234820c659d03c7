"""Reads dumps of Wikipedia (`pages-articles.xml.bz2`) as a stream, without their markup."""

from __future__ import annotations

import bz2
from collections.abc import Iterator
from typing import BinaryIO
from xml.etree import ElementTree

import mwparserfromhell
import regex
from mwparserfromhell.nodes import Node, Tag, Wikilink
from mwparserfromhell.parser import ParserError
from mwparserfromhell.wikicode import Wikicode

from beam_pipelines.records.records import Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import LANGUAGES

# What is not running text: notes, formulas, code, pictures, tables.
_LEFT_OUT = frozenset(
    ("ref", "references", "math", "chem", "score", "timeline", "gallery", "table", "pre", "code")
    + ("syntaxhighlight", "source", "hiero", "imagemap", "graph", "templatestyles", "mapframe")
)
_ARTICLES = "0"
# Known in Wikipedias of every language, besides the names in their own.
_ENGLISH_NAMESPACES = ("file", "image", "category", "media")
_SWITCH = regex.compile(r"__[\p{L}_]+__")


def read_wikipedia(stream: BinaryIO, file: CorpusFile) -> Iterator[Document | InputError]:
    """Yields the articles of a dump as plain text; redirects and other pages are left out.

    In the place of an article that cannot be read comes an InputError.

    Raises:
      InputError: if the dump is damaged or has no articles.
    """
    data = bz2.BZ2File(stream) if file.path.endswith(".bz2") else stream
    articles = _read_articles(data)
    empty = True
    while True:
        try:
            article = next(articles, None)
        except (ElementTree.ParseError, EOFError, OSError, ValueError) as error:
            raise InputError(
                f"the dump is damaged or truncated ({error})",
                path=file.path,
                remedy="fetch it again",
            ) from error
        if article is None:
            break
        empty = False
        yield _make_document(*article, file)
    if empty:
        raise InputError("the dump has no articles", path=file.path, remedy="leave it out")


def _make_document(
    title: str, markup: str, namespaces: frozenset[str], file: CorpusFile
) -> Document | InputError:
    try:
        return Document(plain_text(markup, namespaces), file.language)
    except (ParserError, RecursionError) as error:
        return InputError(
            f"the markup of the article '{title}' cannot be parsed ({error})",
            path=file.path,
            remedy="leave it out with --max-bad-records",
        )


def _read_articles(data: BinaryIO) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yields the title and markup of each article, and the names of the dump's namespaces."""
    names = set(_ENGLISH_NAMESPACES)
    events = ElementTree.iterparse(data, events=("start", "end"))
    _, root = next(events)
    for event, element in events:
        tag = element.tag.rpartition("}")[2]
        if event == "start":
            continue
        if tag == "namespace" and element.text:
            names.add(element.text.lower())
        elif tag == "page":
            if element.findtext("{*}ns") == _ARTICLES and element.find("{*}redirect") is None:
                markup = element.findtext("{*}revision/{*}text") or ""
                yield element.findtext("{*}title") or "", markup, frozenset(names)
            # Else the whole dump would gather in memory.
            root.clear()


def plain_text(markup: str, namespaces: frozenset[str]) -> str:
    """Returns the text of an article, a paragraph a line, without headings' and links' marks.

    Args:
      markup: the wikitext.
      namespaces: in lower case; links to pages in one of these are left out, as they are pictures
        and categories. So are links to other languages' articles.
    """
    # Bold and italics by quotes are what the parser is slowest at.
    code = mwparserfromhell.parse(markup, skip_style_tags=True)
    _prune(code, namespaces)
    text = code.strip_code(normalize=True, collapse=True)
    text = _SWITCH.sub("", text.replace("'''", "").replace("''", ""))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _prune(code: Wikicode, namespaces: frozenset[str]) -> None:
    code.nodes = [node for node in code.nodes if not _is_left_out(node, namespaces)]
    for node in code.nodes:
        if isinstance(node, Tag) and node.contents is not None:
            _prune(node.contents, namespaces)


def _is_left_out(node: Node, namespaces: frozenset[str]) -> bool:
    if isinstance(node, Tag):
        return str(node.tag).strip().lower() in _LEFT_OUT
    if not isinstance(node, Wikilink):
        return False
    # A leading colon links to a page instead of showing it: then the namespace is empty here.
    namespace, colon, _ = str(node.title).partition(":")
    namespace = namespace.strip().lower()
    return bool(colon) and (namespace in namespaces or namespace in LANGUAGES)
