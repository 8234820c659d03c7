"""The text of HTML pages: all of it, or the main content without menus and the like."""

from __future__ import annotations

import codecs
import functools
import logging
from collections.abc import Iterator
from types import ModuleType

import regex
from lxml import etree

_OPTIONS = {"include_comments": False, "include_tables": True, "favor_recall": True}

_CHARSET = regex.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([\w-]+)""", regex.IGNORECASE)
_CHARSET_WITHIN = 4096
# As in browsers: pages that declare the first are mostly in the second, which has more characters.
WIDER_CHARSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}

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


def close_gaps(text: str) -> str:
    """Replaces each GAP by a space where it is between words that need one, else by nothing."""
    return _BETWEEN_WORDS.sub(" ", text).replace(GAP, "") if GAP in text else text


def main_text(html: bytes) -> str:
    """Returns the main content, one paragraph per line; empty if there is none."""
    return _trafilatura().extract(decode_html(html), **_OPTIONS) or ""


def main_and_other_lines(html: bytes) -> tuple[list[str], list[str]]:
    """Returns the paragraphs of the main content, and those from elsewhere on the page.

    A text that occurs in both places is main content.
    """
    page = decode_html(html)
    content = main_text(html)
    main_lines = set(map(_essence, content.split("\n")))
    # The library breaks lines where the page has code and the like.
    main_content = _essence(content)
    main, other = [], []
    # The same code splits both classes into lines, since a model would learn any difference.
    for line in _all_lines(page):
        essence = _essence(line)
        if not essence:
            continue
        is_main = essence in main_lines or (len(essence) >= _LONG and essence in main_content)
        (main if is_main else other).append(line)
    return main, other


def decode_html(html: bytes) -> str:
    """Decodes a page as UTF-8, else in the encoding that it declares, else in the likeliest one."""
    try:
        return html.decode("utf-8")
    except UnicodeDecodeError:
        declared = _CHARSET.search(html[:_CHARSET_WITHIN])
    if declared is not None:
        try:
            name = codecs.lookup(declared[1].decode("ascii")).name
            return html.decode(WIDER_CHARSETS.get(name, name), errors="replace")
        except (LookupError, UnicodeError):
            pass
    return _trafilatura().utils.decode_file(html)


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


def _essence(line: str) -> str:
    return _NOT_TEXT.sub("", line)


@functools.cache
def _trafilatura() -> ModuleType:
    # Imported here because it takes a second.
    import trafilatura
    import trafilatura.utils

    # It warns about every page without text.
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    return trafilatura
