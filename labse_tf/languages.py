"""Codes of languages: the 109 of LaBSE (Feng et al. 2020, appendix), and any other.

`find_code` maps the codes that corpora use (`pt_BR`, `nb`, `zh-Hans`, `sr@latin`, `iw`, `deu`) to
the paper's (mostly ISO 639-1), and codes of other languages to BCP 47 tags: `mfe`, `ba`,
`crh-Latn`. `langcodes` knows which tags exist.
"""

from __future__ import annotations

import difflib
import functools
import logging
import os
import re
from typing import NamedTuple

import langcodes
from langcodes.data_dicts import LIKELY_SUBTAGS

from labse_tf.errors import InputError

_log = logging.getLogger("labse")


class Language(NamedTuple):
    """A language: the paper's code or a BCP 47 tag, the English name, and an ISO 15924 code.

    The script is the one in which it is mostly written today; `Zyyy` if that is not known.
    """

    code: str
    name: str
    script: str


_TABLE = """
af Afrikaans Latn|am Amharic Ethi|ar Arabic Arab|as Assamese Beng|az Azerbaijani Latn
be Belarusian Cyrl|bg Bulgarian Cyrl|bn Bengali Beng|bo Tibetan Tibt|bs Bosnian Latn
ca Catalan Latn|ceb Cebuano Latn|co Corsican Latn|cs Czech Latn|cy Welsh Latn
da Danish Latn|de German Latn|el Greek Grek|en English Latn|eo Esperanto Latn
es Spanish Latn|et Estonian Latn|eu Basque Latn|fa Persian Arab|fi Finnish Latn
fr French Latn|fy Western Frisian Latn|ga Irish Latn|gd Scottish Gaelic Latn|gl Galician Latn
gu Gujarati Gujr|ha Hausa Latn|haw Hawaiian Latn|he Hebrew Hebr|hi Hindi Deva
hmn Hmong Latn|hr Croatian Latn|ht Haitian Creole Latn|hu Hungarian Latn|hy Armenian Armn
id Indonesian Latn|ig Igbo Latn|is Icelandic Latn|it Italian Latn|ja Japanese Jpan
jv Javanese Latn|ka Georgian Geor|kk Kazakh Cyrl|km Khmer Khmr|kn Kannada Knda
ko Korean Kore|ku Kurdish Latn|ky Kyrgyz Cyrl|la Latin Latn|lb Luxembourgish Latn
lo Lao Laoo|lt Lithuanian Latn|lv Latvian Latn|mg Malagasy Latn|mi Maori Latn
mk Macedonian Cyrl|ml Malayalam Mlym|mn Mongolian Cyrl|mr Marathi Deva|ms Malay Latn
mt Maltese Latn|my Burmese Mymr|ne Nepali Deva|nl Dutch Latn|no Norwegian Latn
ny Nyanja Latn|or Odia Orya|pa Punjabi Guru|pl Polish Latn|pt Portuguese Latn
ro Romanian Latn|ru Russian Cyrl|rw Kinyarwanda Latn|si Sinhala Sinh|sk Slovak Latn
sl Slovenian Latn|sm Samoan Latn|sn Shona Latn|so Somali Latn|sq Albanian Latn
sr Serbian Cyrl|st Southern Sotho Latn|su Sundanese Latn|sv Swedish Latn|sw Swahili Latn
ta Tamil Taml|te Telugu Telu|tg Tajik Cyrl|th Thai Thai|tk Turkmen Latn
tl Tagalog Latn|tr Turkish Latn|tt Tatar Cyrl|ug Uyghur Arab|uk Ukrainian Cyrl
ur Urdu Arab|uz Uzbek Latn|vi Vietnamese Latn|wo Wolof Latn|xh Xhosa Latn
yi Yiddish Hebr|yo Yoruba Latn|zh Chinese Hani|zu Zulu Latn
"""


LANGUAGES: dict[str, Language] = {
    code: Language(code, " ".join(name), script)
    for code, *name, script in map(str.split, re.split(r"[|\n]", _TABLE.strip()))
}


def _codes(table: str) -> dict[str, str]:
    return dict(each.split(":") for each in table.split())


# Other codes for the paper's languages: varieties of Norwegian and Chinese, which the paper counts
# as one language each, and the main individual language of a macrolanguage.
_ALIASES = _codes("""
als:sq nb:no nn:no fil:tl cmn:zh kmr:ku pes:fa swh:sw arb:ar azj:az ekk:et khk:mn lvs:lv mww:hmn
npi:ne ory:or plt:mg uzn:uz ydd:yi zsm:ms
""")
# Names of Wikipedias that are no tags, or tags of something else (Wikimedia, "Special language
# codes"). Others use them too, such as OSCAR.
_WIKIPEDIAS = _codes("""
bat-smg:sgs be-x-old:be bh:bho cbk-zam:cbk eml:egl fiu-vro:vro map-bms:jv roa-rup:rup
roa-tara:nap simple:en zh-classical:lzh
""")
# Names that mean another language outside of Wikipedia: Tosk Albanian and Narom.
_ONLY_WIKIPEDIAS = {"als": "gsw", "nrm": "nrf"}

# Tags that name no language: undetermined, several, none, uncoded.
_NO_LANGUAGE = frozenset(("und", "mul", "zxx", "mis"))
UNKNOWN_SCRIPT = "Zyyy"
# Variants of scripts -> the scripts whose letters Unicode names.
_SCRIPTS = {"Hans": "Hani", "Hant": "Hani", "Aran": "Arab"}
_REGION = re.compile(r"-[a-zA-Z]{2}\Z")
_LOCALE_NAME = re.compile(r"[a-z]{2,3}[-_][A-Z]{2}")
_JOINT = re.compile(r"[-_.]+")
_LOCALE = re.compile(r"[-_@.]")


@functools.lru_cache(maxsize=4096)
def find_code(code: str) -> str | None:
    """Returns the normalised code of a language, or None if `code` is not a language's.

    Of the paper's languages, subtags of region, script and variant are dropped: `pt_BR` and `pt-PT`
    are `pt`, `sr@latin` is `sr`, `zh_Hant` is `zh`. Others keep a script that is not their usual
    one: `crh-Latn`, but `crh-Cyrl` is `crh`. The shortest code is taken: `deu` and `ger` are `de`,
    `bak` is `ba`.
    """
    text = code.strip().replace("_", "-")
    text = _WIKIPEDIAS.get(text.lower(), text)
    # Corpora also have regions that are none of countries: `gsw-ZH`.
    tag = _parse(text) or _parse(_REGION.sub("", text))
    if tag is None:
        # A locale, such as `sr@latin` or `en_US.UTF-8`: known only of the paper's languages.
        tag = _parse(_LOCALE.split(code.strip(), maxsplit=1)[0])
        return _paper_code(tag) if tag else None
    if found := _paper_code(tag):
        return found
    language = tag.language or ""
    is_private = language.startswith("x-") or "qaa" <= language <= "qtz"
    if not language or is_private or language in _NO_LANGUAGE:
        return None
    usual = _usual_script(language)
    return f"{language}-{tag.script}" if tag.script not in (None, usual) else language


def find_paper_code(code: str) -> str | None:
    """Returns the paper's code for `code`, or None if the paper does not cover the language."""
    found = find_code(code)
    return found if found in LANGUAGES else None


def find_wikipedia_code(name: str) -> str | None:
    """Like `find_code`, for a Wikipedia or label of lid.176, where `als` is not Albanian."""
    return find_code(_ONLY_WIKIPEDIAS.get(name.lower(), name))


def find_pair(name: str) -> tuple[str, bool] | None:
    """Returns the language that `name` joins with English, and whether the language comes first.

    `en-de` is `("de", False)`; `deu_eng` is `("de", True)`. None for other names.
    """
    pairs = _split_pair(name)
    # `en-pt-br` is English and Portuguese, not Portugal's English and Breton.
    found = [(len(texts[codes.index("en")]), *codes) for texts, codes in pairs if "en" in codes]
    _, one, other = min(found, default=(0, "", ""))
    return ((other, False) if one == "en" else (one, True)) if found else None


def joins_two(name: str) -> bool:
    """Returns whether `name` joins two languages, such as `de-fr`.

    A region is recognised by capitals (`fr-CA`), or if its most likely language precedes (`pt-br`).
    """
    if is_locale(name) or "." in name:  # `dev.de`
        return False
    return any(
        find_code(name) in (codes[0], None)  # `zh-yue` is Cantonese.
        and (LIKELY_SUBTAGS.get(f"und-{texts[1].upper()}") or "-").partition("-")[0] != codes[0]
        for texts, codes in _split_pair(name)
    )


def is_locale(name: str) -> bool:
    """Returns whether `name` is written as a language and a region: `en_GB`, `pt-BR`."""
    return _LOCALE_NAME.fullmatch(name) is not None


def _split_pair(name: str) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Returns the ways to divide `name` into two different languages: their texts and codes."""
    found = []
    for joint in _JOINT.finditer(name):
        texts = name[: joint.start()], name[joint.end() :]
        one, other = map(_code_of_tag, texts)
        if one and other and one != other:
            found.append((texts, (one, other)))
    return found


def _code_of_tag(text: str) -> str | None:
    tag = text.partition("@")[0].replace("_", "-")
    # `in`, the old code of Indonesian, stands for India in such names.
    is_tag = tag.lower() != "in" and tag[:1].isalpha() and _parse(tag) is not None
    return find_code(text) if is_tag else None


def is_code(code: str) -> bool:
    """Returns whether `code` is a language's, and normalised."""
    return find_code(code) == code


def language_of(code: str) -> Language:
    """Returns the language with a normalised code."""
    if code in LANGUAGES:
        return LANGUAGES[code]
    return Language(code, langcodes.Language.get(code).display_name(), script_of(code))


def script_of(code: str) -> str:
    """Returns the script of `language_of(code)`, without the names, which take 300 MB of memory."""
    if code in LANGUAGES:
        return LANGUAGES[code].script
    script = langcodes.Language.get(code).script or _usual_script(code) or UNKNOWN_SCRIPT
    return _SCRIPTS.get(script, script)


def three_letter_code(code: str) -> str:
    """Returns the ISO 639-3 code of a language: `deu` for `de`."""
    return "tgl" if code == "tl" else langcodes.Language.get(code).to_alpha3()


def require_code(
    code: str, *, path: str | os.PathLike[str] | None = None, line: int | None = None
) -> str:
    """Like `find_code`; raises InputError if `code` names none, and suggests the closest codes.

    The first time that a language is not one of the paper's, a line in the log says so.
    """
    found = find_code(code)
    if found is None:
        problem = f"'{code}' is not the code of a language"
        near = difflib.get_close_matches(code.lower(), LANGUAGES, n=3, cutoff=0.3)
        proposal = f"closest: {', '.join(near)}" if near else "for example de, sw, zh, mfe"
        remedy = f"use a code of BCP 47 or ISO 639-3 ({proposal})"
        raise InputError(problem, remedy=remedy, path=path, line=line)
    if found not in LANGUAGES:
        _say_once(found)
    return found


@functools.cache
def _say_once(code: str) -> None:
    name = language_of(code).name
    _log.info("'%s' is %s, not one of the 109 languages of LaBSE; it is taken as it is", code, name)


def _parse(tag: str) -> langcodes.Language | None:
    """Returns what a valid tag says, in its shortest form; None for another."""
    if not tag or not langcodes.tag_is_valid(tag):
        return None
    return langcodes.Language.get(tag, normalize=True)


def _paper_code(tag: langcodes.Language) -> str | None:
    language = tag.language or ""
    language = _ALIASES.get(language, language)
    return language if language in LANGUAGES else None


def _usual_script(language: str) -> str | None:
    likely = LIKELY_SUBTAGS.get(language)
    return langcodes.Language.get(likely).script if likely else None
