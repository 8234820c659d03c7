"""Reads Wikipedia dumps (`pages-articles.xml.bz2`) as a stream and removes the markup."""

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
from labse_tf.languages import is_code

# Tags whose content is not running text: notes, formulas, code, pictures, tables.
_LEFT_OUT = frozenset(
    ("ref", "references", "math", "chem", "score", "timeline", "gallery", "table", "pre", "code")
    + ("syntaxhighlight", "source", "hiero", "imagemap", "graph", "templatestyles", "mapframe")
)
_ARTICLES = "0"
# Valid in the Wikipedia of every language, in addition to its own names.
_ENGLISH_NAMESPACES = ("file", "image", "category", "media")
_SWITCH = regex.compile(r"__[\p{L}_]+__")


def read_wikipedia(stream: BinaryIO, file: CorpusFile) -> Iterator[Document | InputError]:
    """Yields the articles of a dump as plain text; redirects and other pages are left out.

    An article that cannot be read is replaced by an InputError.

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
            # Otherwise the whole dump would accumulate in memory.
            root.clear()


def plain_text(markup: str, namespaces: frozenset[str]) -> str:
    """Returns the text of an article, one paragraph per line, without markup of headings and links.

    Args:
      markup: the wikitext.
      namespaces: in lower case; links to pages in these, pictures and categories, are left out. So
        are links to articles in other languages.
    """
    # The parser is slowest at bold and italics marked by quotes.
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
    # A leading colon makes a link to a page instead of showing it; the namespace is then empty.
    namespace, colon, _ = str(node.title).partition(":")
    namespace = namespace.strip().lower()
    return bool(colon) and (namespace in namespaces or is_code(namespace))
