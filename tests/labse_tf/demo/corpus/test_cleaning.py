"""Raw catalogue entries in many scripts become clean sentences, or are dropped."""

import pytest

from labse_tf.demo.corpus.cleaning import MAX_CHARACTERS, clean_pair, strip_markup

KEPT = [
    # language, English, foreign, English clean, foreign clean
    ("de", "Save changes", "Änderungen speichern", "Save changes", "Änderungen speichern"),
    ("de", "Name:", "Bezeichnung:", "Name", "Bezeichnung"),
    ("fr", "Loading...", "Chargement…", "Loading", "Chargement"),
    ("fr", "Read &amp; write", "Lire &amp; écrire", "Read & write", "Lire & écrire"),
    (
        "es",
        "Open a\n  <b>new</b> page",
        "Abrir <b>otra</b> hoja",
        "Open a new page",
        "Abrir otra hoja",
    ),
    ("pl", "&File menu", "_Menu pliku", "File menu", "Menu pliku"),
    ("ja", "Open", "開く(&O)", "Open", "開く"),
    ("it", "See `the manual`.", "Vedi `il manuale`.", "See the manual.", "Vedi il manuale."),
    ("ru", "**Bold** text", "**Жирный** текст", "Bold text", "Жирный текст"),
    ("ar", "Delete “%(name)s”?", "حذف «%(name)s»؟", "Delete “X”?", "حذف «X»؟"),
    ("ja", "%s was deleted", "%sを削除しました", "X was deleted", "Xを削除しました"),
    ("th", "$name is locked", "$nameถูกล็อก", "X is locked", "Xถูกล็อก"),
    ("zh", "Hello {name}", "{name}，你好", "Hello X", "X，你好"),
    ("ka", "${title} is published", "${title} გამოქვეყნდა", "X is published", "X გამოქვეყნდა"),
    ("hi", "%(count)d pages", "%(count)d पृष्ठ", "5 pages", "5 पृष्ठ"),
    ("el", "%(num_pages)s pages", "%(num_pages)s σελίδες", "5 pages", "5 σελίδες"),
    ("ko", "%d%% done", "%d%% 완료", "5% done", "5% 완료"),
    ("am", "Today", "ዛሬ", "Today", "ዛሬ"),
    ("my", "Delete", "ဖျက်သိမ်းပါ", "Delete", "ဖျက်သိမ်းပါ"),
    ("sr", "Language", "Jezik", "Language", "Jezik"),
    ("he", "New\u200f folder", "\u200fתיקייה חדשה", "New folder", "תיקייה חדשה"),
    ("fa", "Favourites", "علاقه\u200cمندی", "Favourites", "علاقه\u200cمندی"),
    ("vi", "E\u0302tre", "Tie\u0302\u0301ng", "Être", "Tiếng"),
    ("ja", "Year", "年", "Year", "年"),
]

DROPPED = [
    ("de", "Save", "", "untranslated"),
    ("de", "Name", "Name", "the same on both sides"),
    ("da", "Welsh", "welsh", "the same but for case"),
    ("ru", "Save the page", "Save page", "no letter of the language's script"),
    ("ja", "Save the page", "Save page", "no letter of the language's script"),
    ("de", "Save", "Сохранить", "another script"),
    ("ku", "Save", "پاشەکەوتکردن", "Sorani in Arabic script"),
    ("my", "Comment", "မႀတ္ခဵက္", "an old font"),
    ("de", "Hello %(name)s", "Hallo", "a placeholder lost"),
    ("de", "File ${filename}", "Feld ${fieldname}", "other placeholders"),
    ("de", "{a} {b} {c} {e} are here", "{a} {b} {c} {e} sind da", "too many placeholders"),
    ("de", "%(name)s, %(time)s", "%(name)s um %(time)s", "placeholders alone"),
    ("de", "N j, Y", "j. F Y", "a date format"),
    ("de", "the date YYYY-MM-DD", "das Datum JJJJ-MM-TT", "a date format"),
    ("de", "5 %", "5 Prozent", "no word"),
    ("de", "See https://example.org", "Siehe https://example.org hier", "an address"),
    ("de", "Write to me@example.org", "Schreib an me@example.org", "an e-mail address"),
    ("de", "Call save() first", "Erst save() rufen", "code"),
    ("de", "The field site_name", "Das Feld site_name", "an identifier"),
    ("ta", "Location", "லேபிள்_வென்ட்_லோகேசன்", "an identifier in another script"),
    ("de", "Use <meta name='x'> here", "Nutze <meta name='x'> hier", "a tag that is spoken of"),
    ("de", "Use {% block %}", "Nutze {% block %}", "template code"),
    ("de", "word " * MAX_CHARACTERS, "Wort " * MAX_CHARACTERS, "too long"),
    ("de", "A very long sentence that tells a lot of things.", "Ein Satz.", "another length"),
]


@pytest.mark.parametrize(("language", "english", "foreign", "english_clean", "foreign_clean"), KEPT)
def test_kept(language, english, foreign, english_clean, foreign_clean):
    assert clean_pair(english, foreign, language) == (english_clean, foreign_clean)


@pytest.mark.parametrize(("language", "english", "foreign", "why"), DROPPED)
def test_dropped(language, english, foreign, why):
    assert clean_pair(english, foreign, language) is None, why


def test_placeholders_are_named_in_the_order_of_english():
    found = clean_pair("%(a)s moved to %(b)s", "%(b)s へ %(a)s を移動", "ja")
    assert found == ("X moved to Y", "Y へ X を移動")


def test_placeholders_without_a_name_are_told_apart_by_their_order():
    assert clean_pair("%s in module %s", "%s im Modul %s", "de") == (
        "X in module Y",
        "X im Modul Y",
    )


def test_counted_placeholders_become_the_number_of_the_form():
    assert clean_pair("%d page", "%d Seite", "de", number=1) == ("1 page", "1 Seite")


def test_dense_scripts_are_weighed():
    english = "You cannot have two pages with the same slug at the same page level."
    assert clean_pair(english, "同一頁面層級下不能有相同簡稱的兩個頁面。", "zh")


def test_tags_of_blocks_separate_words_and_others_do_not():
    assert strip_markup("<p>One</p><p>t<b>w</b>o</p>") == "One two"
