"""The scripts of languages, grouped into families for plots."""

from __future__ import annotations

from typing import NamedTuple

from labse_tf.languages import script_of


class Family(NamedTuple):
    """Scripts that share a hue in plots.

    Attributes:
      name: shown in the legend.
      hue: in degrees.
      scripts: English names by ISO 15924 code.
    """

    name: str
    hue: int
    scripts: dict[str, str]


FAMILIES = (
    Family("Latin", 215, {"Latn": "Latin"}),
    Family("Cyrillic", 0, {"Cyrl": "Cyrillic"}),
    Family(
        "Greek, Armenian, Georgian",
        280,
        {"Grek": "Greek", "Armn": "Armenian", "Geor": "Georgian"},
    ),
    Family(
        "Arabic, Hebrew, Ethiopic",
        130,
        {"Arab": "Arabic", "Hebr": "Hebrew", "Ethi": "Ethiopic"},
    ),
    Family(
        "Northern Indic",
        30,
        {
            "Deva": "Devanagari",
            "Beng": "Bengali",
            "Guru": "Gurmukhi",
            "Gujr": "Gujarati",
            "Orya": "Odia",
            "Tibt": "Tibetan",
        },
    ),
    Family(
        "Southern Indic",
        325,
        {
            "Taml": "Tamil",
            "Telu": "Telugu",
            "Knda": "Kannada",
            "Mlym": "Malayalam",
            "Sinh": "Sinhala",
        },
    ),
    Family(
        "South-East Asian",
        178,
        {"Thai": "Thai", "Laoo": "Lao", "Khmr": "Khmer", "Mymr": "Burmese"},
    ),
    Family("East Asian", 52, {"Hani": "Chinese", "Jpan": "Japanese", "Kore": "Korean"}),
    Family("other", 85, {}),
)
SCRIPT_NAMES = {code: name for family in FAMILIES for code, name in family.scripts.items()}


def family_of(language: str) -> Family:
    """Returns the family of the script that a language is written in."""
    script = script_of(language)
    return next((family for family in FAMILIES if script in family.scripts), FAMILIES[-1])
