"""Raw catalogue entries in many scripts become clean sentences, or are dropped."""

from labse_tf.demo.corpus.cleaning import MAX_CHARACTERS, clean_pair, strip_markup

KEPT = [
    # Language, English, foreign, English clean, foreign clean.
    ("de", "Save changes", "Änderungen speichern", "Save changes", "Änderungen speichern"),
    ("fr", "Read &amp; write", "Lire &amp; écrire", "Read & write", "Lire & écrire"),
    ("pl", "&File menu", "_Menu pliku", "File menu", "Menu pliku"),
    ("ja", "Open", "開く(&O)", "Open", "開く"),
    ("ru", "**Bold** text", "**Жирный** текст", "Bold text", "Жирный текст"),
    ("ar", "Delete “%(name)s”?", "حذف «%(name)s»؟", "Delete “X”?", "حذف «X»؟"),
    ("th", "$name is locked", "$nameถูกล็อก", "X is locked", "Xถูกล็อก"),
    ("ka", "${title} is published", "${title} გამოქვეყნდა", "X is published", "X გამოქვეყნდა"),
    ("hi", "%(count)d pages", "%(count)d पृष्ठ", "5 pages", "5 पृष्ठ"),
    ("ko", "%d%% done", "%d%% 완료", "5% done", "5% 완료"),
    ("am", "Today", "ዛሬ", "Today", "ዛሬ"),
    ("my", "Delete", "ဖျက်သိမ်းပါ", "Delete", "ဖျက်သိမ်းပါ"),
    ("sr", "Language", "Jezik", "Language", "Jezik"),
    ("he", "New\u200f folder", "\u200fתיקייה חדשה", "New folder", "תיקייה חדשה"),
    ("vi", "E\u0302tre", "Tie\u0302\u0301ng", "Être", "Tiếng"),
]

DROPPED = [
    ("de", "Save", "", "untranslated"),
    ("de", "Name", "Name", "the same on both sides"),
    ("da", "Welsh", "welsh", "the same but for case"),
    ("ru", "Save the page", "Save page", "no letter of the language's script"),
    ("ku", "Save", "پاشەکەوتکردن", "Sorani in Arabic script"),
    ("my", "Comment", "မႀတ္ခဵက္", "an old font"),
    ("de", "Hello %(name)s", "Hallo", "a placeholder lost"),
    ("de", "{a} {b} {c} {e} are here", "{a} {b} {c} {e} sind da", "too many placeholders"),
    ("de", "%(name)s, %(time)s", "%(name)s um %(time)s", "placeholders alone"),
    ("de", "N j, Y", "j. F Y", "a date format"),
    ("de", "5 %", "5 Prozent", "no word"),
    ("de", "See https://example.org", "Siehe https://example.org hier", "an address"),
    ("de", "Write to me@example.org", "Schreib an me@example.org", "an e-mail address"),
    ("de", "The field site_name", "Das Feld site_name", "an identifier"),
    ("ta", "Location", "லேபிள்_வென்ட்_லோகேசன்", "an identifier in another script"),
    ("de", "Use <meta name='x'> here", "Nutze <meta name='x'> hier", "a tag that is spoken of"),
    ("de", "word " * MAX_CHARACTERS, "Wort " * MAX_CHARACTERS, "too long"),
    ("de", "A very long sentence that tells a lot of things.", "Ein Satz.", "another length"),
]


def test_kept_and_dropped():
    for language, english, foreign, *clean in KEPT:
        assert clean_pair(english, foreign, language) == tuple(clean)
    for language, english, foreign, why in DROPPED:
        assert clean_pair(english, foreign, language) is None, why


def test_placeholders():
    """They are named in the order of English; counts become the number of the form."""
    for english, foreign, language, clean in (
        ("%(a)s moved to %(b)s", "%(b)s へ %(a)s を移動", "ja", ("X moved to Y", "Y へ X を移動")),
        ("%s in module %s", "%s im Modul %s", "de", ("X in module Y", "X im Modul Y")),
        ("%d page", "%d Seite", "de", ("1 page", "1 Seite")),
    ):
        assert clean_pair(english, foreign, language, number=1) == clean


def test_dense_scripts_are_weighed_and_tags_of_blocks_separate_words():
    english = "You cannot have two pages with the same slug at the same page level."
    assert clean_pair(english, "同一頁面層級下不能有相同簡稱的兩個頁面。", "zh")
    assert strip_markup("<p>One</p><p>t<b>w</b>o</p>") == "One two"
