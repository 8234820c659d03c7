"""The text of HTML pages: all of it, or the main content without menus and the like."""

from __future__ import annotations

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding
from resiliparse.parse.html import HTMLTree

# Marks that the library, not the author, would put into the text; image captions are no sentences.
_OPTIONS = {"list_bullets": False, "alt_texts": False}


def main_text(html: bytes) -> str:
    """Returns the main content, a paragraph a line."""
    return extract_plain_text(_parse(html), main_content=True, **_OPTIONS)


def main_and_other_lines(html: bytes) -> tuple[list[str], list[str]]:
    """Returns the paragraphs of the main content, and those from elsewhere on the page.

    A text that stands in both is taken for main content.
    """
    tree = _parse(html)
    main = _lines(extract_plain_text(tree, main_content=True, **_OPTIONS))
    everything = _lines(extract_plain_text(tree, main_content=False, **_OPTIONS))
    known = set(main)
    return main, [line for line in everything if line not in known]


def _parse(html: bytes) -> HTMLTree:
    encoding = detect_encoding(html, from_html_meta=True)
    return HTMLTree.parse(bytes_to_str(html, encoding))


def _lines(text: str) -> list[str]:
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return [line for line in lines if line]
