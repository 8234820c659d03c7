"""Reads names of languages, territories, currencies, units and time from CLDR, as part of Babel.

Only kinds whose entries are words in every language are used; abbreviations, patterns and the
cities of time zones (mostly the same word in another spelling) are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from babel import localedata

from labse_tf.demo.corpus.catalogues import RawPair
from labse_tf.demo.corpus.packages import Source
from labse_tf.languages import find_paper_code

_FLAT_KINDS = ("languages", "territories", "scripts", "currency_names", "measurement_systems")
_CALENDAR_KINDS = ("months", "days", "quarters", "day_periods")
# In addition to plain languages, the second standard of languages that have two.
_STANDARDS = ("zh_Hant", "pt_PT", "sr_Latn", "nn")


def list_locales() -> list[tuple[str, str]]:
    """Returns `(CLDR's locale, the paper's code)` of each locale to read, sorted, no English."""
    locales = [name for name in localedata.locale_identifiers() if "_" not in name]
    pairs = [(name, find_paper_code(name)) for name in {*locales, *_STANDARDS}]
    return sorted((name, code) for name, code in pairs if code and code != "en")


def read_names(locale: str, language: str, source: Source) -> Iterator[RawPair]:
    """Yields the names that both English and `locale` have."""
    english, foreign = (dict(_names(localedata.load(name))) for name in ("en", locale))
    for key, name in english.items():
        if key in foreign:
            yield RawPair(name, foreign[key], language, source.distribution)


def _names(data: Mapping) -> Iterator[tuple[tuple, str]]:
    """Yields `(key of a thing, its name)`."""
    for kind in _FLAT_KINDS:
        for key, name in _own(data, kind).items():
            yield (kind, key), name
    for kind in _CALENDAR_KINDS:
        for use in ("format", "stand-alone"):
            for key, name in _own(data, kind, use, "wide").items():
                yield (kind, use, key), name
    for key in _own(data, "unit_display_names"):
        if name := _own(data, "unit_display_names", key).get("long"):
            yield ("unit", key), name
    for key in _own(data, "meta_zones"):
        for form, name in _own(data, "meta_zones", key, "long").items():
            yield ("zone", key, form), name


def _own(data: Mapping, *keys: str) -> Mapping:
    """Returns the mapping at `keys` without aliases.

    Aliases are not followed, as Babel writes the resolved values into data that languages share:
    the months of one language would turn up in another.
    """
    for key in keys:
        data = data.get(key, {})
        if isinstance(data, tuple):  # (alias, values that differ from it)
            data = data[1]
        if isinstance(data, localedata.Alias):
            return {}
    return {key: value for key, value in data.items() if not isinstance(value, localedata.Alias)}
