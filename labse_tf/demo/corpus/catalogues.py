"""Reads pairs of English and another language from the gettext catalogues of a package.

Plural forms: a message with a count has two forms in English, singular and plural, but between one
and six in other languages. Each catalogue states, as a C expression, which form goes with which
number. The English plural is paired with the form for `MANY`, and the singular with the form for
`ONE` if that is a different form; forms for other numbers are left out. The same numbers replace
the placeholders later.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import polib

from labse_tf.demo.corpus.packages import Source, find_folder
from labse_tf.languages import find_paper_code

ONE, MANY = 1, 5

_PLURAL_RULE = re.compile(r"plural\s*=\s*([^;]+)")
_DEFAULT = re.compile(r'Default:\s*"(.*)"', re.DOTALL)
_IDENTIFIER = re.compile(r"[a-z0-9]+|\S*[a-z0-9]_\S*")


class RawPair(NamedTuple):
    """An English text and its translation, as found.

    Attributes:
      english: the English side.
      foreign: the other side.
      language: the paper's code of the other side.
      source: the distribution that it comes from.
      number: the number that replaces a placeholder for a count.
    """

    english: str
    foreign: str
    language: str
    source: str
    number: int = MANY


def list_catalogues(source: Source) -> list[tuple[Path, str | None]]:
    """Returns `(catalogue, the paper's code of its language or None)`, without English, sorted.

    Raises:
      InputError: if the package is not installed.
    """
    paths = sorted(find_folder(source).rglob(f"LC_MESSAGES/{source.pattern}"))
    found = [(path, find_paper_code(path.parent.parent.name)) for path in paths]
    return [(path, code) for path, code in found if code != "en"]


def read_catalogue(path: Path, language: str, source: Source) -> Iterator[RawPair]:
    """Yields the translated entries of a .mo or .po file, or nothing if the file is malformed."""
    try:
        catalogue = (polib.mofile if path.suffix == ".mo" else polib.pofile)(str(path))
    except (OSError, UnicodeDecodeError):  # polib's syntax errors are OSErrors
        return
    find_form = _plural_rule(catalogue.metadata.get("Plural-Forms", ""))
    for entry in catalogue:
        if "fuzzy" in entry.flags or entry.obsolete:
            continue
        if entry.msgid_plural:
            for english, foreign, number in _counted_pairs(entry, find_form):
                yield RawPair(english, foreign, language, source.distribution, number)
        elif english := _english_of(entry):
            yield RawPair(english, entry.msgstr, language, source.distribution)


def _english_of(entry: polib.POEntry) -> str | None:
    default = _DEFAULT.search(entry.comment)
    if default:
        return default[1].replace('\\"', '"')
    return None if _IDENTIFIER.fullmatch(entry.msgid) else entry.msgid


def _plural_rule(header: str) -> Callable[[int], int] | None:
    rule = _PLURAL_RULE.search(header)
    try:
        return gettext.c2py(rule[1].strip()) if rule else None
    except ValueError:
        return None


def _counted_pairs(
    entry: polib.POEntry, find_form: Callable[[int], int] | None
) -> Iterator[tuple[str, str, int]]:
    if find_form is None:
        return
    forms = entry.msgstr_plural
    if find_form(ONE) != find_form(MANY):
        yield entry.msgid, forms.get(find_form(ONE), ""), ONE
    yield entry.msgid_plural, forms.get(find_form(MANY), ""), MANY
