"""The 109 languages of LaBSE (Feng et al. 2020, appendix): codes, English names, main scripts.

Codes are the paper's (mostly ISO 639-1). `find_code` maps codes found in corpora (`pt_BR`, `nb`,
`zh-Hans`, `sr@latin`, `iw`, `deu`) to them.
"""

from __future__ import annotations

import difflib
import os
import re
from typing import NamedTuple

from labse_tf.errors import InputError


class Language(NamedTuple):
    """A language of the paper.

    Attributes:
      code: the paper's code.
      name: the English name.
      script: the ISO 15924 code of the script in which it is mostly written today.
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


def _parse_table() -> dict[str, Language]:
    rows = (row.split() for row in _TABLE.strip().replace("\n", "|").split("|"))
    return {row[0]: Language(row[0], " ".join(row[1:-1]), row[-1]) for row in rows}


LANGUAGES: dict[str, Language] = _parse_table()

# Other codes for the paper's languages: deprecated codes, varieties of Norwegian and Chinese, which
# the paper counts as one language each, and the main individual language of a macrolanguage.
_ALIASES = {
    "nb": "no",
    "nn": "no",
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "jw": "jv",
    "mo": "ro",
    "fil": "tl",
    "cmn": "zh",
    "kmr": "ku",
    "pes": "fa",
    "swh": "sw",
    "nob": "no",
    "nno": "no",
    "arb": "ar",
    "azj": "az",
    "ekk": "et",
    "khk": "mn",
    "lvs": "lv",
    "mww": "hmn",
    "npi": "ne",
    "ory": "or",
    "plt": "mg",
    "uzn": "uz",
    "ydd": "yi",
    "zsm": "ms",
}

# ISO 639-3 codes, then the ISO 639-2/B codes that differ.
_THREE_LETTERS = """
afr af|amh am|ara ar|asm as|aze az|bel be|ben bn|bod bo|bos bs|bul bg|cat ca|ces cs|cos co|cym cy
dan da|deu de|ell el|eng en|epo eo|est et|eus eu|fas fa|fin fi|fra fr|fry fy|gla gd|gle ga|glg gl
guj gu|hat ht|hau ha|heb he|hin hi|hrv hr|hun hu|hye hy|ibo ig|ind id|isl is|ita it|jav jv|jpn ja
kan kn|kat ka|kaz kk|khm km|kin rw|kir ky|kor ko|kur ku|lao lo|lat la|lav lv|lit lt|ltz lb|mal ml
mar mr|mkd mk|mlg mg|mlt mt|mon mn|mri mi|msa ms|mya my|nep ne|nld nl|nor no|nya ny|ori or|pan pa
pol pl|por pt|ron ro|rus ru|sin si|slk sk|slv sl|smo sm|sna sn|som so|sot st|spa es|sqi sq|srp sr
sun su|swa sw|swe sv|tam ta|tat tt|tel te|tgk tg|tgl tl|tha th|tuk tk|tur tr|uig ug|ukr uk|urd ur
uzb uz|vie vi|wol wo|xho xh|yid yi|yor yo|zho zh|zul zu
alb sq|arm hy|baq eu|bur my|chi zh|cze cs|dut nl|fre fr|geo ka|ger de|gre el|ice is|mac mk|mao mi
may ms|per fa|rum ro|slo sk|tib bo|wel cy
"""
_THREE = [row.split() for row in _THREE_LETTERS.strip().replace("\n", "|").split("|")]
_ALIASES |= dict(_THREE)
# The first code of a language is that of ISO 639-3.
_TO_THREE = {code: three for three, code in reversed(_THREE)}


def find_code(code: str) -> str | None:
    """Returns the paper's code for `code`, or None if the paper does not cover the language.

    Region, script and variant subtags are dropped: `pt_BR` and `pt-PT` are `pt`, `sr@latin` is
    `sr`, `zh_Hant` is `zh`. Three-letter codes are known too: `deu` and `ger` are `de`.
    """
    base = re.split(r"[-_@.]", code.strip().lower(), maxsplit=1)[0]
    base = _ALIASES.get(base, base)
    return base if base in LANGUAGES else None


def three_letter_code(code: str) -> str:
    """Returns the ISO 639-3 code of one of the paper's languages: `deu` for `de`."""
    return _TO_THREE.get(code, code)


def require_code(
    code: str, *, path: str | os.PathLike[str] | None = None, line: int | None = None
) -> str:
    """Like `find_code`, for input that must name one of the paper's languages.

    Raises:
      InputError: if it does not; the message suggests the closest codes.
    """
    found = find_code(code)
    if found is None:
        near = difflib.get_close_matches(code.lower(), LANGUAGES, n=3, cutoff=0.3)
        proposal = f"closest: {', '.join(near)}" if near else "for example de, sw, zh"
        raise InputError(
            f"'{code}' is not the code of one of the 109 languages",
            remedy=f"use one of them ({proposal})",
            path=path,
            line=line,
        )
    return found
