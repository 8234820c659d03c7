"""Turns a raw pair of catalogue entries into two clean sentences, or drops it.

Placeholders are replaced by readable text: those for a count by the number of the pair, the others
by X, Y and Z in their order in the English text. A pair is dropped if

* it is not translated: a side is empty, both sides are the same text, or the foreign side has no
  letter of a script that its language is written in;
* the placeholders of the two sides differ, or more than three do not stand for counts;
* a side is not natural language: it has no word of two letters (one, where a character is a word),
  or contains code, identifiers, date patterns, web or e-mail addresses; or it is longer than
  `MAX_CHARACTERS`;
* one side is so much longer than the other that it must say more.
"""

from __future__ import annotations

import functools
import html
import unicodedata

import regex

from labse_tf.languages import script_of

MAX_CHARACTERS = 400

# Only tags that format text. Other tags are what the message is about: it is dropped as code.
_BLOCK_TAG = regex.compile(r"</?(?:p|div|li|ul|ol|dl|dt|dd|h\d|br|hr|pre)\b[^<>]*>", regex.I)
_TAG = regex.compile(
    r"</?(?:a|abbr|b|button|code|dfn|em|i|kbd|label|small|span|strong|sub|sup|tt|u)\b[^<>]*>",
    regex.I,
)
_ESCAPE = regex.compile(r"\\[nrt]")
_REST = regex.compile(r":[a-z]+:(?=`)|`+_*|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)")
_MNEMONIC = regex.compile(r"\s?\(&\w\)|(?<![\w&])[&_](?=\p{L})")
_INVISIBLE = regex.compile(r"[\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SPACE = regex.compile(r"\s+")

# `%(name)s %s ${name} {name} {} $name`; not \w, which in a language written without spaces would
# also match the text after the placeholder.
_PLACEHOLDER = regex.compile(
    r"""%\((?P<name>\w+)\)[-#0+]?\d*(?:\.\d+)?(?P<type>[a-z])
      | %[-#0+]?\d*(?:\.\d+)?(?P<type>[sdifrx])
      | \$?\{(?P<name>[A-Za-z0-9_.!:/\- ]*)\}
      | \$(?P<name>[A-Za-z][A-Za-z0-9_]*)""",
    regex.VERBOSE,
)
_PLACEHOLDER_MARK = regex.compile(r"[%{$]")
_COUNTED_NAME = regex.compile(
    r"(?:.+_)?(?:count|counter|cnt|number|num|n|total|length|max|min|hours|days|[dhm])(?:_.+)?"
    r"|(?:limit|show)_value"
)
_LETTERS = "XYZ"

_EDGES = regex.compile(
    r"""^ (?: [\s\-–—•·*+←→›|>:…#] | \.{2,} )+
      | (?: [\s:：…|←→<>#=*\-–—] | \.{2,} )+ $""",
    regex.VERBOSE,
)
_CODE = regex.compile(
    r"""[{}\\=<>|~^$] | :: | %[(%] | (?<!\w)--\w             # templates, options
      | \w\(\) | \w_\w | (?:^|\s)\.?/\w                     # calls, identifiers, paths
      | :// | \bwww\. | \w@\w | [a-z]\.(?:com|org|net)\b    # addresses
      | [a-z]\.[a-z]+\.[a-z] | \b(?:YYYY|yyyy|HH|hh)\b      # dotted names, patterns of dates
    """,
    regex.VERBOSE,
)
# Each match of _CODE contains one of these. Checked first, as most texts have none.
_CODE_MARK = regex.compile(r"[{}\\=<>|~^$:%_/@.()\-]")
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}]|[\p{Han}\p{Hangul}]")
_SEVERAL_SCRIPTS = {
    "Jpan": r"\p{Hiragana}\p{Katakana}\p{Han}",
    "Kore": r"\p{Hangul}\p{Han}",
    "Hani": r"\p{Han}",
}
_ALSO_WRITTEN_IN = {"sr": r"\p{Latn}"}
# Text encoded for old Burmese fonts: a virama (U+1039) without a consonant to stack, or letters of
# the Mon, Karen and Shan languages, whose code points those fonts used for other glyphs.
_OLD_BURMESE = regex.compile("\u1039(?![\u1000-\u1021])|[\u105a-\u109f]")

_DENSE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
_DENSE_WEIGHT = 2.5
_LENGTH_RATIO = 3.0
_SHORT = 40  # letters; length ratios of shorter texts are not meaningful


def clean_pair(
    english: str, foreign: str, language: str, *, number: int = 5
) -> tuple[str, str] | None:
    """Returns the two sides as plain sentences, or None for a pair to drop.

    `number` replaces placeholders for counts; both sides must be the form for this number.
    """
    if not foreign or english == foreign:
        return None
    filled = _fill_placeholders(_strip_english(english), strip_markup(foreign), number)
    if filled is None:
        return None
    english, foreign = (_EDGES.sub("", text) for text in filled)
    if english.casefold() == foreign.casefold():
        return None
    if not (_is_language(english) and _is_language(foreign)):
        return None
    if not _fit_in_length(english, foreign) or not _is_written_right(foreign, language):
        return None
    return english, foreign


def strip_markup(text: str) -> str:
    """Returns `text` without HTML and reST markup, entities, mnemonics and superfluous space."""
    if "<" in text:
        text = _TAG.sub("", _BLOCK_TAG.sub(" ", text))
    if "\\" in text:
        text = _ESCAPE.sub(" ", text)
    if "&" in text:
        text = html.unescape(text)
    if "`" in text or "*" in text:
        text = _REST.sub("", text)
    if "&" in text or "_" in text:
        text = _MNEMONIC.sub("", text)
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    return _SPACE.sub(" ", text).strip()


# The same English text occurs with every language.
_strip_english = functools.lru_cache(maxsize=1 << 16)(strip_markup)


def _fill_placeholders(english: str, foreign: str, number: int) -> tuple[str, str] | None:
    if not (_PLACEHOLDER_MARK.search(english) or _PLACEHOLDER_MARK.search(foreign)):
        return english, foreign
    names, foreign_names = _placeholders(english), _placeholders(foreign)
    if sorted(names) != sorted(foreign_names):
        return None
    plain = [name for name in dict.fromkeys(names) if not _is_counted(name)]
    if len(plain) > len(_LETTERS):
        return None
    filling = dict(zip(plain, _LETTERS, strict=False))
    if not (_says_more(english) and _says_more(foreign)):
        return None
    filled = []
    for text, found in ((english, names), (foreign, foreign_names)):
        values = iter([filling.get(name, str(number)) for name in found])
        filled.append(_PLACEHOLDER.sub(lambda _, v=values: next(v), text).replace("%%", "%"))
    return filled[0], filled[1]


def _placeholders(text: str) -> list[str]:
    """Returns the names of the placeholders in order; unnamed ones are numbered."""
    names: list[str] = []
    for match in _PLACEHOLDER.finditer(text):
        name = match["name"] or f"%{len(names)}"
        names.append(name + ("|d" if match["type"] in ("d", "i", "f") else ""))
    return names


def _is_counted(name: str) -> bool:
    return name.endswith("|d") or _COUNTED_NAME.fullmatch(name) is not None


def _says_more(text: str) -> bool:
    return _WORD.search(_PLACEHOLDER.sub(" ", text)) is not None


def _is_language(text: str) -> bool:
    if len(text) > MAX_CHARACTERS or _WORD.search(text) is None:
        return False
    return _CODE_MARK.search(text) is None or _CODE.search(text) is None


def _fit_in_length(english: str, foreign: str) -> bool:
    """Tells whether the lengths are similar enough for the two sides to say the same."""
    if max(len(english), len(foreign)) * _DENSE_WEIGHT < _SHORT:
        return True
    lengths = sorted(
        len(text) + (_DENSE_WEIGHT - 1) * len(_DENSE.findall(text)) for text in (english, foreign)
    )
    return lengths[1] < _SHORT or lengths[1] <= _LENGTH_RATIO * lengths[0]


def _is_written_right(text: str, language: str) -> bool:
    if language == "my" and _OLD_BURMESE.search(text):
        return False
    return _script_letter(language).search(text) is not None


@functools.cache
def _script_letter(language: str) -> regex.Pattern:
    script = script_of(language)
    own = _SEVERAL_SCRIPTS.get(script, rf"\p{{{script}}}")
    return regex.compile(f"[{own}{_ALSO_WRITTEN_IN.get(language, '')}]")
