"""Reads names from CLDR, which Babel carries: of languages, territories, currencies, units, time.

Only kinds whose entries are words in every language are taken; abbreviations, patterns and the
cities of time zones (mostly the same word in another spelling) are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from babel import localedata

from labse_tf.corpora.catalogues import RawPair
from labse_tf.corpora.packages import Source
from labse_tf.languages import find_code

_FLAT_KINDS = ("languages", "territories", "scripts", "currency_names", "measurement_systems")
_CALENDAR_KINDS = ("months", "days", "quarters", "day_periods")
_ZONE_FORMS = ("generic", "standard", "daylight")
# Beside the bare languages, the other standard of a language with two.
_STANDARDS = ("zh_Hant", "pt_PT", "sr_Latn", "nn")


def list_locales() -> list[tuple[str, str]]:
    """Returns `(CLDR's locale, the paper's code)` of the languages read, without English, sorted."""
    locales = [name for name in localedata.locale_identifiers() if "_" not in name]
    pairs = [(name, find_code(name)) for name in {*locales, *_STANDARDS}]
    return sorted((name, code) for name, code in pairs if code and code != "en")


def read_names(locale: str, language: str, source: Source) -> Iterator[RawPair]:
    """Yields the names that both English and `locale` have."""
    english, foreign = (dict(_names(localedata.load(name))) for name in ("en", locale))
    for key, name in english.items():
        if key in foreign:
            yield RawPair(name, foreign[key], language, source.distribution)


def _names(data: Mapping) -> Iterator[tuple[tuple, str]]:
    """Yields `(key of a thing, its name)`."""
    data = localedata.LocaleDataDict(data)
    for kind in _FLAT_KINDS:
        for key, name in data.get(kind, {}).items():
            yield (kind, key), name
    for kind in _CALENDAR_KINDS:
        for use in ("format", "stand-alone"):
            for key, name in data[kind].get(use, {}).get("wide", {}).items():
                yield (kind, use, key), name
    for key, forms in data.get("unit_display_names", {}).items():
        if "long" in forms:
            yield ("unit", key), forms["long"]
    for key, zone in data.get("meta_zones", {}).items():
        for form in _ZONE_FORMS:
            if form in zone.get("long", {}):
                yield ("zone", key, form), zone["long"][form]
