"""Reads Wikipedia dumps (`pages-articles.xml.bz2`) as a stream and removes the markup.

Templates that carry running text are rendered; any other may leave a HOLE.
"""

from __future__ import annotations

import bz2
import collections
from collections.abc import Callable, Iterator
from typing import BinaryIO
from xml.etree import ElementTree

import mwparserfromhell
import regex
from mwparserfromhell.nodes import ExternalLink, Heading, Node, Tag, Template, Text, Wikilink
from mwparserfromhell.parser import ParserError
from mwparserfromhell.wikicode import Wikicode

from beam_pipelines.reading.web import GAP, NO_SPACES, close_gaps
from beam_pipelines.records import HOLE, Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import CorpusFile
from labse_tf.languages import is_code

# Tags whose content is not running text: notes; formulas and code, which may be part of a sentence;
# pictures and tables.
_NOTES = ("ref", "references", "templatestyles")
_FORMULAS = ("math", "chem", "ce", "score", "hiero", "code", "syntaxhighlight", "source")
_FIGURES = ("gallery", "timeline", "imagemap", "graph", "mapframe", "table", "pre")
# Tags that end a line.
_BLOCK = regex.compile(
    r"(?i)</?(?:p|div|li|[duo]l|d[dt]|hr|h[1-6]|blockquote|center|poem)(?:[\s/][^<>]*)?>"
)
_BREAKS = regex.compile(rf"{GAP}(?:\s*{GAP})+")
_PARENTHESES = regex.compile(r"\s*[(（]([^()（）]*+)[)）]")
_NOTHING = regex.compile(rf"[\s,;:、，；{GAP}]*")
# A hole that is no part of a sentence: alone in a line, at the end, or directly after a word or a
# comma as notes are. Where words are not separated, it may be a word.
_HARMLESS = regex.compile(
    rf"(?m)^\W*{HOLE}\W*$|(?V1)(?<=[[\p{{L}}\p{{M}},;.!?…»”\")\]]--[{NO_SPACES}]]){HOLE}+"
    rf"(?=[\s,;.:!?)]|$)|(?<=[.!?…。！？।։۔؟][\"”»)」』]*)\s*{HOLE}+[\s{HOLE}]*$"
)
# The parser tries each of these anew, to the end of the article, while it is not closed.
_MARKS = regex.compile(
    r"<math\b[^<>]*>(?s:.{0,2000}?)</math>|<[a-z][^<>]*/>|(?P<unended><[a-z][^<>]*(?=<|\Z))"
    r"|(?P<open><!--|\{{2,3}|\{\||\[\[|\[(?=(?:\w+:)?//)|<(?!w?br\b)[a-z]+)"
    r"|(?P<close>-->|\}\}|(?<=\n[ \t]*)\|\}|\]\]?|</[a-z]+)"
)
_OPENED_BY = {"-->": "<!--", "}}": "{{", "|}": "{|", "]]": "[[", "]": "["}
_MAX_OPEN, _NESTED = 200, 3
_ARTICLES = "0"
# Valid in the Wikipedia of every language, in addition to its own names.
_ENGLISH_NAMESPACES = ("file", "image", "category", "media")
_SWITCH = regex.compile(r"__[\p{L}_]+__")

# Before the colon: what the templates after it show. A field is an argument, by number or name, the
# first that is given of several; 0 is the template's own name, * are all arguments, -1 is the last.
_RULES = """
{1}: abbr, nowrap, nobr, nobreak, small, smaller, big, nobold, noitalic, tooltip, comment, sup, sub
{1}: smallcaps, mvar, nihongo, ruby, 読み仮名, ルビ, citation, cita, quote, flag, flagcountry
{convert}: convert, cvt
{as of}: as of
{1}: s, s-
{2}: lang, langx, color, colour, font color, hover title
{-1}: transl, transliteration, translit
{*}: unité, unite, unidad, nombre, nb, num, number, date, date-, esd
{1} {u}{ul}: val
{lt|1}: ill, interlanguage link
{texte|fr|trad|1}: lien
{2|1}: нп, нп1, нп2, нп3, нп4, нп5, не переведено
{label|1}: 仮リンク
{3|1}: le, link-en, link-ja, link-de, link-fr
{4|3}: tsl
{0} {1}: uss, hms, ss, sms, rms, mv, ms, rv, hmas, hmcs, usns, m., mme, mlle, dr, p.
{1} {2}: ship
{1}-class {2}: sclass, sclass2
{0}: er, re, e, ème, 1er, 1re, ier, ire, av. j.-c., ap. j.-c.
siglo {1}: siglo
c. {1}: circa, c., ca., ca
fl. {1}: floruit, fl.
r. {1}–{2}: reign
 – : snd, spnd, spaced ndash, spaced en dash
–: ndash, en dash
—: mdash, em dash
 : nbsp, nnbsp, space, spaces, sp, thinsp, thin space, hairsp, hair space, espace
': ', ’
's: 's
|: !
=: ="""
_RULE_OF = {
    name: rule
    for rule, _, names in (line.rpartition(": ") for line in _RULES.strip("\n").split("\n"))
    for name in names.split(", ")
}
_FIELD = regex.compile(r"\{([^{}]+)\}")
# Notes, requests for sources, boxes, places on maps.
_NO_RUNNING_TEXT = regex.compile(
    r"cit[ae]|harv|sfn|snf|ref|efn|note|clarif|who\b|when\b|which\b|by whom|vague|dubious|better "
    r"|page needed|dead|webarchive|failed|unreliable|update|coord|anchor|ancre|якорь|flag|info"
    r"|taxobox|clear|shy|wbr|quand|qui\b|réf|нет аи|источник|переход|要出典|誰|いつ|来源|來源"
    r"|ouvrage|lien web|internetquelle|literatur|belege|use |short desc|(?:rp?|cn|fact|0|,|-)$"
)
_CENTURY = regex.compile(r"[ivxl]+er? siècle")
_NUMBER = regex.compile(r"[\d.,−-]*\d")
_RANGES = {"to": " to ", "and": " and ", "or": " or ", "-": "–", "–": "–", "by": " by ", "x": " × "}
_UNIT = regex.compile(r"[\w°%/. ]+")
_UNITS = {"km2": "km²", "m2": "m²", "m3": "m³", "sqmi": "sq mi", "C": "°C", "F": "°F"}


class _TooManyOpen(Exception):
    """The parser would take time that grows with the square of the article's length."""


def read_wikipedia(stream: BinaryIO, file: CorpusFile) -> Iterator[Document | InputError]:
    """Yields the articles of a dump as plain text; redirects and other pages are left out."""
    title = None
    for title, markup, namespaces in _read_articles(stream, file):
        try:
            yield Document(plain_text(markup, namespaces), file.language)
        except (ParserError, RecursionError, _TooManyOpen) as error:
            problem = f"the markup of the article '{title}' cannot be parsed ({error})"
            remedy = "leave it out with --max-bad-records"
            yield InputError(problem, path=file.path, remedy=remedy)
    if title is None:
        raise InputError("the dump has no articles", path=file.path, remedy="leave it out")


def _read_articles(stream: BinaryIO, file: CorpusFile) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yields the title and markup of each article, and the names of the dump's namespaces."""
    data = bz2.BZ2File(stream) if file.path.endswith(".bz2") else stream
    names = set(_ENGLISH_NAMESPACES)
    try:
        events = ElementTree.iterparse(data, events=("start", "end"))
        _, root = next(events)
        for event, element in events:
            tag = element.tag.rpartition("}")[2] if event == "end" else ""
            if tag == "namespace" and element.text:
                names.add(element.text.lower())
            elif tag == "page":
                if element.findtext("{*}ns") == _ARTICLES and element.find("{*}redirect") is None:
                    markup = element.findtext("{*}revision/{*}text") or ""
                    yield element.findtext("{*}title") or "", markup, frozenset(names)
                # Otherwise the whole dump would accumulate in memory.
                root.clear()
    except (ElementTree.ParseError, EOFError, OSError, ValueError, LookupError) as error:
        problem = f"the dump is damaged or truncated ({error})"
        raise InputError(problem, path=file.path, remedy="fetch it again") from error


def plain_text(markup: str, namespaces: frozenset[str]) -> str:
    """Returns the text of an article, one paragraph per line, without markup of headings and links.

    HOLE stands for what is shown in a sentence and not known: formulas, most templates. Links to
    pages in `namespaces` (in lower case), such as pictures, and to articles in other languages are
    left out.
    """
    markup = _BLOCK.sub("\n", markup)
    _check_open(markup)
    # The parser is slowest at bold and italics marked by quotes.
    code = mwparserfromhell.parse(markup, skip_style_tags=True)
    text = _text_of(code, namespaces)
    text = _SWITCH.sub("", text.replace("'''", "").replace("''", ""))
    lines = (_tidy(" ".join(line.split())) for line in _BREAKS.sub("\n", text).split("\n"))
    return "\n".join(filter(None, lines))


def _check_open(markup: str) -> None:
    numbers: collections.Counter[str] = collections.Counter()
    for mark in _MARKS.finditer(markup.lower()):
        if opened := mark["open"] or (mark["unended"] and "<"):
            numbers[opened] += 1
            if numbers[opened] > _MAX_OPEN:
                raise _TooManyOpen(f"more than {_MAX_OPEN} times '{opened}' without an end")
        elif closed := mark["close"]:
            opened = _OPENED_BY.get(closed, closed.replace("/", ""))
            numbers[opened] = max(numbers[opened] - 1, 0)


def _tidy(line: str) -> str:
    """Returns a line without the holes and gaps that are no part of its sentences."""

    def without_holes(match: regex.Match) -> str:
        return "" if HOLE in match[1] or _NOTHING.fullmatch(match[1]) else match[0]

    for _ in range(min(line.count(HOLE), _NESTED) + 1):
        line = _PARENTHESES.sub(without_holes, line)
    return " ".join(close_gaps(_HARMLESS.sub("", line)).split())


def _text_of(code: Wikicode, namespaces: frozenset[str]) -> str:
    _clean(code, namespaces)
    return code.strip_code(normalize=True, collapse=True)


def _clean(code: Wikicode | None, namespaces: frozenset[str]) -> None:
    """Leaves the nodes that are text, in place of which `strip_code` gives their content."""
    nodes: list[Node] = []
    for node in code.nodes if code else ():
        name = str(node.tag).strip().lower() if isinstance(node, Tag) else ""
        if isinstance(node, Template):
            text = _render(node, lambda part: _text_of(part, namespaces))
            # A box that is followed by text in the same line.
            begins = not nodes or str(nodes[-1]).endswith("\n")
            nodes.append(Text("\n" if text == HOLE and begins and "\n" in str(node) else text))
        elif name in _NOTES or _is_left_out(node, namespaces):
            continue
        elif name == "br":
            nodes.append(Text(GAP))
        elif name in _FORMULAS or name in _FIGURES:
            nodes.append(Text("\n" if name in _FIGURES else HOLE))
        else:
            for part in _PARTS.get(type(node), ()):
                _clean(getattr(node, part), namespaces)
            nodes.append(node)
    if code:
        code.nodes = nodes


_PARTS = {Tag: ("contents",), Wikilink: ("text",), ExternalLink: ("title",), Heading: ("title",)}


def _is_left_out(node: Node, namespaces: frozenset[str]) -> bool:
    # A leading colon makes a link to a page instead of showing it; the namespace is then empty.
    title = str(node.title) if isinstance(node, Wikilink) else ""
    namespace, colon, _ = title.partition(":")
    namespace = namespace.strip().lower()
    return bool(colon) and (namespace in namespaces or is_code(namespace))


def _render(template: Template, text_of: Callable[[Wikicode], str]) -> str:
    """Returns what a template shows, "" if that is no running text, HOLE if it is unknown.

    `text_of` returns the text of a name or an argument.
    """
    shown = text_of(template.name).strip()
    name = shown.lower().replace("_", " ")
    if name.startswith("formatnum:"):
        return shown.partition(":")[2]
    rule = "{1}" if name.startswith("lang-") else _RULE_OF.get(name)
    if _CENTURY.fullmatch(name):
        rule = "{0}"
    if rule is None:
        return "" if _NO_RUNNING_TEXT.match(name) else HOLE
    args = {str(one.name).strip(): text_of(one.value).strip() for one in template.params}
    ordered = [args[key] for key in map(str, range(1, len(args) + 1)) if key in args]
    if rule == "{convert}":
        return _converted(ordered)
    if rule == "{as of}":
        written = not any(map(str.isdigit, ordered[1:2]))
        return " ".join(("as of" if "lc" in args else "As of", *ordered[::-1])) if written else HOLE
    if name in ("s", "s-") and regex.fullmatch("[IVXL]+", args.get("1", "")):
        return f"{args['1']}{'er' if args['1'] == 'I' else 'e'} siècle"
    args |= {"0": shown, "*": " ".join(ordered), "-1": "".join(ordered[-1:])}
    filled = [
        next(filter(None, map(args.get, field.split("|"))), "") for field in _FIELD.findall(rule)
    ]
    if rule.startswith("{") and not any(filled):
        return "" if _NO_RUNNING_TEXT.match(name) else HOLE
    return _FIELD.sub("%s", rule) % tuple(filled)


def _converted(args: list[str]) -> str:
    """Returns the quantity of `{{convert}}` in its first unit, as in `5 to 10 km`, `5 ft 6 in`."""
    text = ""
    for place, arg in enumerate(args):
        if _NUMBER.fullmatch(arg) or arg in _RANGES:
            text += _RANGES.get(arg, arg)
            continue
        if not _UNIT.fullmatch(arg):
            break
        text += f" {_UNITS.get(arg, arg)} "
        if not ("".join(args[place + 1 : place + 2]).isdigit() and place + 2 < len(args)):
            return text.strip()
    return HOLE
