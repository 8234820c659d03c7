"""The installed packages that the demo corpus is taken from, and the raw pairs in them.

A package has gettext catalogues of English and another language, or, as Babel, CLDR's names of
languages, territories, currencies, units and time. Only kinds of names whose entries are words in
every language are used; abbreviations, patterns and the cities of time zones (mostly the same word
in another spelling) are not.

A message with a count has between one and six forms; each catalogue states, as a C expression,
which form goes with which number. The English plural is paired with the form for `MANY`, and the
singular with the form for `ONE` if that differs; the numbers replace the placeholders later.
"""

from __future__ import annotations

import gettext
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import polib
from babel import localedata

from labse_tf.errors import InputError
from labse_tf.languages import find_paper_code

MESSAGES, NAMES = "messages", "names"
ONE, MANY = 1, 5

_PLURAL_RULE = re.compile(r"plural\s*=\s*([^;]+)")
_DEFAULT = re.compile(r'Default:\s*"(.*)"', re.DOTALL)
_IDENTIFIER = re.compile(r"[a-z0-9]+|\S*[a-z0-9]_\S*")
_FLAT_KINDS = ("languages", "territories", "scripts", "currency_names", "measurement_systems")
_CALENDAR_KINDS = ("months", "days", "quarters", "day_periods")
# In addition to plain languages, the second standard of languages that have two.
_STANDARDS = ("zh_Hant", "pt_PT", "sr_Latn", "nn")


class Source(NamedTuple):
    """A package that contains translations.

    Attributes:
      distribution: its name on PyPI.
      module: the Python package whose folder holds the files.
      pattern: glob of the catalogues' file names; "" for a source without gettext catalogues.
      data_licence: licence of the data, if the package's metadata gives another one for its code.
    """

    distribution: str
    module: str
    kind: str
    pattern: str
    data_licence: str = ""


# The compiled .mo files leave out fuzzy entries. Only the .po files of Plone hold its English text.
# ISO 3166-2 in pycountry is not read: its names of provinces are mostly not English.
SOURCES = (
    Source("Django", "django", MESSAGES, "*.mo"),
    Source("django-cms", "cms", MESSAGES, "*.mo"),
    Source("django-filter", "django_filters", MESSAGES, "*.mo"),
    Source("django-formtools", "formtools", MESSAGES, "*.mo"),
    Source("django-taggit", "taggit", MESSAGES, "*.mo"),
    Source("django-treebeard", "treebeard", MESSAGES, "*.mo"),
    Source("djangorestframework", "rest_framework", MESSAGES, "*.mo"),
    Source("plone.app.locales", "plone.app.locales", MESSAGES, "*.po"),
    Source("Sphinx", "sphinx", MESSAGES, "*.mo"),
    Source("wagtail", "wagtail", MESSAGES, "*.mo"),
    Source("pycountry", "pycountry", NAMES, "iso*[!2].mo"),
    Source("babel", "babel", NAMES, "", data_licence="Unicode-3.0"),
)


class RawPair(NamedTuple):
    """An English text and its translation, as found; `number` stands for a count in it."""

    english: str
    foreign: str
    number: int = MANY


def find_folder(source: Source) -> Path:
    """Returns the folder of a source, without importing it; InputError if it is not installed."""
    try:
        spec = importlib.util.find_spec(source.module)
    except ModuleNotFoundError:  # a parent of a dotted name
        spec = None
    if spec is None or not spec.submodule_search_locations:
        problem = f"the package {source.distribution} is not installed"
        raise InputError(problem, remedy="install 'labse-tf[demo]'")
    return Path(next(iter(spec.submodule_search_locations)))


def find_licence(source: Source) -> str:
    """Returns the licence of an installed source, as stated in its metadata, and of its data."""
    facts = importlib.metadata.metadata(source.distribution)
    stated = facts.get("License-Expression") or facts.get("License")
    if not stated:
        classifiers = facts.get_all("Classifier") or []
        named = [name for name in classifiers if name.startswith("License ::")]
        stated = ", ".join(name.split(" :: ")[-1] for name in named) or "not stated"
    stated = stated.splitlines()[0]
    return f"{stated} (data: {source.data_licence})" if source.data_licence else stated


def list_files(source: Source) -> list[tuple[Path | str, str | None]]:
    """Returns the files of a source, sorted, and the paper's codes of their languages, or None.

    English is left out. The file of Babel is CLDR's name of a locale.
    """
    if not source.pattern:
        names = [name for name in localedata.locale_identifiers() if "_" not in name]
        pairs = [(name, find_paper_code(name)) for name in {*names, *_STANDARDS}]
        return sorted((name, code) for name, code in pairs if code and code != "en")
    paths = sorted(find_folder(source).rglob(f"LC_MESSAGES/{source.pattern}"))
    found = [(path, find_paper_code(path.parent.parent.name)) for path in paths]
    return [(path, code) for path, code in found if code != "en"]


def read_raw_pairs(file: Path | str) -> Iterator[RawPair]:
    """Yields the translated entries of a file from `list_files`; nothing if it is malformed."""
    return _read_catalogue(file) if isinstance(file, Path) else _read_names(file)


def _read_catalogue(path: Path) -> Iterator[RawPair]:
    try:
        catalogue = (polib.mofile if path.suffix == ".mo" else polib.pofile)(str(path))
    except (OSError, UnicodeDecodeError):  # polib's syntax errors are OSErrors
        return
    find_form = _plural_rule(catalogue.metadata.get("Plural-Forms", ""))
    for entry in catalogue:
        if "fuzzy" in entry.flags or entry.obsolete:
            continue
        if entry.msgid_plural:
            if find_form is None:
                continue
            forms = entry.msgstr_plural
            if find_form(ONE) != find_form(MANY):
                yield RawPair(entry.msgid, forms.get(find_form(ONE), ""), ONE)
            yield RawPair(entry.msgid_plural, forms.get(find_form(MANY), ""), MANY)
        elif default := _DEFAULT.search(entry.comment):
            yield RawPair(default[1].replace('\\"', '"'), entry.msgstr)
        elif not _IDENTIFIER.fullmatch(entry.msgid):
            yield RawPair(entry.msgid, entry.msgstr)


def _plural_rule(header: str) -> Callable[[int], int] | None:
    rule = _PLURAL_RULE.search(header)
    try:
        return gettext.c2py(rule[1].strip()) if rule else None
    except ValueError:
        return None


def _read_names(locale: str) -> Iterator[RawPair]:
    """Yields the names that both English and `locale` have."""
    english, foreign = (dict(_names(localedata.load(name))) for name in ("en", locale))
    for key, name in english.items():
        if key in foreign:
            yield RawPair(name, foreign[key])


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

    Babel writes what an alias leads to into data that languages share, such as names of months.
    """
    for key in keys:
        data = data.get(key, {})
        if isinstance(data, tuple):  # (alias, values that differ from it)
            data = data[1]
        if isinstance(data, localedata.Alias):
            return {}
    return {key: value for key, value in data.items() if not isinstance(value, localedata.Alias)}
