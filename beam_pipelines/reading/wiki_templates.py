"""Renders the templates of Wikipedia that carry running text; any other may leave a HOLE."""

from __future__ import annotations

from collections.abc import Callable

import regex
from mwparserfromhell.nodes import Template
from mwparserfromhell.wikicode import Wikicode

from beam_pipelines.records.records import HOLE

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
_NO_TEXT = regex.compile(
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


def render(template: Template, text_of: Callable[[Wikicode], str]) -> str:
    """Returns what a template shows, "" if that is no running text, HOLE if it is unknown.

    Args:
      template: it may contain others.
      text_of: returns the text of a name or an argument.
    """
    shown = text_of(template.name).strip()
    name = shown.lower().replace("_", " ")
    if name.startswith("formatnum:"):
        return shown.partition(":")[2]
    rule = "{1}" if name.startswith("lang-") else _RULE_OF.get(name)
    if _CENTURY.fullmatch(name):
        rule = "{0}"
    if rule is None:
        return "" if _NO_TEXT.match(name) else HOLE
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
        return "" if _NO_TEXT.match(name) else HOLE
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
