"""The text of HTML pages: all of it, or the main content without menus and the like."""

from __future__ import annotations

import regex
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

# Marks that the library, not the author, would put into the text; image captions are no sentences.
_OPTIONS = {"list_bullets": False, "alt_texts": False}
_NOT_TEXT = regex.compile(r"[^\p{L}\p{M}\p{N}]+")


def main_text(html: bytes) -> str:
    """Returns the main content, a paragraph a line."""
    return extract_plain_text(_decode(html), main_content=True, **_OPTIONS)


def main_and_other_lines(html: bytes) -> tuple[list[str], list[str]]:
    """Returns the paragraphs of the main content, and those from elsewhere on the page.

    Two libraries judge, `trafilatura` more strictly; paragraphs that they do not agree on are left
    out, as they would teach a model mistakes. A text that stands in both places is main content.
    """
    # Here, as its import takes a second.
    import trafilatura

    page = _decode(html)
    strict = _essence(
        trafilatura.extract(page, include_comments=False, include_tables=False, favor_recall=True)
        or ""
    )
    lenient = _essence(extract_plain_text(page, main_content=True, **_OPTIONS))
    main, other = [], []
    # Both classes are cut into lines by the same library: a model would learn the difference.
    for line in extract_plain_text(page, main_content=False, **_OPTIONS).split("\n"):
        text = " ".join(line.split())
        essence = _essence(text)
        if essence in strict and essence in lenient:
            main.append(text)
        elif essence not in strict and essence not in lenient:
            other.append(text)
    return [text for text in main if text], other


def _essence(line: str) -> str:
    return _NOT_TEXT.sub("", line)


def _decode(html: bytes) -> str:
    return bytes_to_str(html, detect_encoding(html, from_html_meta=True))
