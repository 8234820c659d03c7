"""Catalogues are read with their English, their plural forms and their languages."""

import polib
import pytest
from polib import POEntry

from labse_tf.demo.corpus.sources import (
    MANY,
    MESSAGES,
    ONE,
    SOURCES,
    Source,
    find_folder,
    find_licence,
    list_files,
    read_raw_pairs,
)
from labse_tf.errors import InputError

SOURCE_OF = {source.distribution: source for source in SOURCES}
RUSSIAN = (
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : "
    "n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
)


@pytest.fixture
def read(tmp_path):
    """Returns what is read of a catalogue with these entries."""

    def read(name, entries, plural_forms=None):
        catalogue = polib.POFile()
        catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
        if plural_forms:
            catalogue.metadata["Plural-Forms"] = plural_forms
        catalogue.extend(entries)
        path = tmp_path / name
        (catalogue.save_as_mofile if path.suffix == ".mo" else catalogue.save)(str(path))
        return [tuple(raw) for raw in read_raw_pairs(path)]

    return read


def counted(*forms):
    return POEntry(msgid="%d page", msgid_plural="%d pages", msgstr_plural=dict(enumerate(forms)))


def test_plural_forms_are_those_of_the_numbers(read):
    entry = counted("%d страница", "%d страницы", "%d страниц")
    for name in ("a.mo", "a.po"):
        expected = [("%d page", "%d страница", ONE), ("%d pages", "%d страниц", MANY)]
        assert read(name, [entry], RUSSIAN) == expected
    # A language without plural gives the plural alone.
    found = read("a.mo", [counted("%d頁")], "nplurals=1; plural=0;")
    assert found == [("%d pages", "%d頁", MANY)]
    # Without a rule, plurals are left out.
    entries = [counted("a", "b"), POEntry(msgid="Save", msgstr="Сохранить")]
    for rule in (None, "nplurals=INTEGER; plural=EXPRESSION;"):
        assert read("a.mo", entries, rule) == [("Save", "Сохранить", MANY)]


def test_the_english_of_identifiers_stands_in_the_comment(read):
    entries = [
        POEntry(msgid="label_a", msgstr="А", comment='Default: "Say \\"a\\" now"'),
        POEntry(msgid="label_b", msgstr="Б", comment='Default: "Two\nlines"'),
        POEntry(msgid="label_c", msgstr="В"),
        POEntry(msgid="Good day", msgstr="Добрый день"),
    ]
    found = [('Say "a" now', "А"), ("Two\nlines", "Б"), ("Good day", "Добрый день")]
    assert read("a.po", entries) == [(*pair, MANY) for pair in found]


def test_fuzzy_and_obsolete_entries_and_malformed_catalogues_give_nothing(read, tmp_path):
    entries = [
        POEntry(msgid="One thing", msgstr="Один", flags=["fuzzy"]),
        POEntry(msgid="Two things", msgstr="Два", obsolete=True),
    ]
    assert read("a.po", entries) == []
    for name in ("broken.po", "broken.mo"):
        (tmp_path / name).write_text("This is no catalogue.\n")
        assert list(read_raw_pairs(tmp_path / name)) == []


def test_languages_are_the_papers_and_english_is_left_out():
    files = list_files(SOURCE_OF["Django"])
    languages = {path.parent.parent.name: code for path, code in files}
    assert languages["zh_Hant"] == languages["zh_Hans"] == "zh"
    assert languages["sr_Latn"] == "sr" and languages["nb"] == "no" and languages["br"] is None
    assert not {"en", "en_GB", "en_AU"} & set(languages)
    # Provinces are not read.
    domains = {path.name for path, _ in list_files(SOURCE_OF["pycountry"])}
    assert {"iso3166-1.mo", "iso639-3.mo"} <= domains and "iso3166-2.mo" not in domains


def test_names_of_cldr():
    # Following an alias changes data that Babel shares between its locales.
    months = {"az": "avqust", "de": "august", "es": "agosto", "sw": "agosti"}
    found = {code: {raw.english: raw.foreign for raw in read_raw_pairs(code)} for code in months}
    assert {code: names["August"].casefold() for code, names in found.items()} == months
    assert (found["sw"]["Germany"], found["sw"]["Croatian"]) == ("Ujerumani", "Kikorasia")


def test_sources_are_there_with_a_licence_or_named_with_the_remedy():
    for source in SOURCES:
        assert find_folder(source).is_dir()
        assert any(word in find_licence(source) for word in ("BSD", "GPL", "Apache")), source
    for module in ("no_such_package", "no_such_package.locales"):
        with pytest.raises(InputError) as caught:
            find_folder(Source("no-such", module, MESSAGES, "*.mo"))
        assert "no-such" in caught.value.problem and "labse-tf[demo]" in caught.value.remedy
