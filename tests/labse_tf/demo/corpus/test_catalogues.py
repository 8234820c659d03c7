"""Catalogues are read with their English, their plural forms and their languages."""

import polib
import pytest

from labse_tf.demo.corpus import names
from labse_tf.demo.corpus.catalogues import MANY, ONE, list_catalogues, read_catalogue
from labse_tf.demo.corpus.packages import MESSAGES, SOURCES, Source, find_folder, find_licence
from labse_tf.errors import InputError

SOURCE = Source("test", "test", MESSAGES, "*.mo")
SOURCE_OF = {source.distribution: source for source in SOURCES}
RUSSIAN = (
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : "
    "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
)


def write_catalogue(path, entries, plural_forms=None):
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    if plural_forms:
        catalogue.metadata["Plural-Forms"] = plural_forms
    catalogue.extend(entries)
    (catalogue.save_as_mofile if path.suffix == ".mo" else catalogue.save)(str(path))
    return path


def read(path, language="ru"):
    return [
        (raw.english, raw.foreign, raw.number) for raw in read_catalogue(path, language, SOURCE)
    ]


def counted(*forms):
    return polib.POEntry(
        msgid="%d page", msgid_plural="%d pages", msgstr_plural=dict(enumerate(forms))
    )


@pytest.mark.parametrize("suffix", [".mo", ".po"])
def test_plural_forms_are_those_of_the_numbers(tmp_path, suffix):
    entry = counted("%d страница", "%d страницы", "%d страниц")
    path = write_catalogue(tmp_path / f"a{suffix}", [entry], RUSSIAN)
    assert read(path) == [("%d page", "%d страница", ONE), ("%d pages", "%d страниц", MANY)]


def test_a_language_without_plural_gives_the_plural_alone(tmp_path):
    path = write_catalogue(tmp_path / "a.mo", [counted("%d頁")], "nplurals=1; plural=0;")
    assert read(path, "zh") == [("%d pages", "%d頁", MANY)]


@pytest.mark.parametrize("rule", [None, "nplurals=INTEGER; plural=EXPRESSION;"])
def test_plurals_without_a_rule_are_left_out(tmp_path, rule):
    entries = [counted("a", "b"), polib.POEntry(msgid="Save", msgstr="Сохранить")]
    path = write_catalogue(tmp_path / "a.mo", entries, rule)
    assert read(path) == [("Save", "Сохранить", MANY)]


def test_the_english_of_identifiers_stands_in_the_comment(tmp_path):
    entries = [
        polib.POEntry(msgid="label_a", msgstr="А", comment='Default: "Say \\"a\\" now"'),
        polib.POEntry(msgid="label_b", msgstr="Б", comment='Default: "Two\nlines"'),
        polib.POEntry(msgid="label_c", msgstr="В"),
        polib.POEntry(msgid="Good day", msgstr="Добрый день"),
    ]
    assert read(write_catalogue(tmp_path / "a.po", entries)) == [
        ('Say "a" now', "А", MANY),
        ("Two\nlines", "Б", MANY),
        ("Good day", "Добрый день", MANY),
    ]


def test_fuzzy_and_obsolete_entries_are_left_out(tmp_path):
    entries = [
        polib.POEntry(msgid="One thing", msgstr="Один", flags=["fuzzy"]),
        polib.POEntry(msgid="Two things", msgstr="Два", obsolete=True),
    ]
    assert read(write_catalogue(tmp_path / "a.po", entries)) == []


@pytest.mark.parametrize("name", ["broken.po", "broken.mo"])
def test_a_malformed_catalogue_gives_nothing(tmp_path, name):
    path = tmp_path / name
    path.write_text("This is no catalogue.\n")
    assert read(path) == []


def test_languages_are_the_papers_and_english_is_left_out():
    languages = {
        path.parent.parent.name: code for path, code in list_catalogues(SOURCE_OF["Django"])
    }
    assert languages["zh_Hant"] == languages["zh_Hans"] == "zh"
    assert languages["sr_Latn"] == "sr" and languages["nb"] == "no"
    assert languages["br"] is None
    assert not {"en", "en_GB", "en_AU"} & set(languages)


def test_provinces_are_not_read():
    domains = {path.name for path, _ in list_catalogues(SOURCE_OF["pycountry"])}
    assert {"iso3166-1.mo", "iso639-3.mo"} <= domains and "iso3166-2.mo" not in domains


def test_names_of_cldr():
    found = {raw.english: raw.foreign for raw in names.read_names("sw", "sw", SOURCE_OF["babel"])}
    assert found["Germany"] == "Ujerumani"
    assert found["Croatian"] == "Kikorasia"


def test_no_language_gets_the_months_of_another():
    # Following an alias changes data that Babel shares between its locales.
    for locale in ("az", "de", "es"):
        found = {raw.english: raw.foreign for raw in names.read_names(locale, locale, SOURCE)}
        assert (
            found["August"].casefold() == {"az": "avqust", "de": "august", "es": "agosto"}[locale]
        )


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.locales"])
def test_a_missing_package_is_named_with_its_remedy(module):
    with pytest.raises(InputError, match=r"no-such.*pip install 'labse-tf\[demo\]'"):
        try:
            find_folder(Source("no-such", module, MESSAGES, "*.mo"))
        except InputError as error:
            raise InputError(str(error), remedy="") from error


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.distribution)
def test_every_source_is_there_with_a_licence(source):
    assert find_folder(source).is_dir()
    assert any(word in find_licence(source) for word in ("BSD", "GPL", "Apache"))
