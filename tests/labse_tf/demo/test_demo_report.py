"""The demo's report: what it says, that it says it safely, and how its sentences are chosen."""

import gzip
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup

from labse_tf.demo.report import (
    Sentence,
    choose_sentences,
    find_neighbours,
    format_table,
    write_report,
)
from labse_tf.languages import LANGUAGES

ATTACK = "<script>alert('x')</script> & \"quoted\""
CODES = ("en", "de", "ru", "ar", "he", "hi", "ja", "zh")


def scores(to_english, from_english):
    return {"to_english": to_english, "from_english": from_english}


@pytest.fixture
def accuracies():
    codes = [code for code in LANGUAGES if code != "en"]
    trained = {code: scores(0.9 - i / 200, 0.8 - i / 200) for i, code in enumerate(codes)}
    evaluation = {
        "max_candidates": 500,
        "average": {"model": scores(0.613, 0.588), "tfidf": scores(0.25, 0.125)},
        "languages": {
            code: {"pairs": 2 + 5 * i, "model": trained[code], "tfidf": scores(0.333, 0.0)}
            for i, code in enumerate(codes)
        },
    }
    table = {
        "max_candidates": 500,
        "average": {"model": scores(0.031, 0.042)},
        "languages": {code: {"pairs": 9, "model": scores(0.05, 1.0)} for code in codes},
    }
    return evaluation, table


def write(destination, accuracies):
    """Three messages in all languages of CODES; each message has an axis of its own."""
    sentences = [
        Sentence(f"{ATTACK} {code} {group}", code, group) for group in range(3) for code in CODES
    ]
    groups = [sentence.group for sentence in sentences]
    vectors = np.eye(8)[groups] + 0.1 * np.random.default_rng(0).normal(size=(len(groups), 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    facts = {"Training pairs": "474,014 in 107 <languages>"}
    results = {"evaluation": accuracies[0], "table": accuracies[1], "facts": facts}
    write_report(**results, sentences=sentences, vectors=vectors, destination=destination)
    return destination.read_text("utf-8")


def test_report_is_whole_safe_and_complete(tmp_path, accuracies):
    html = write(tmp_path / "report.html", accuracies)
    page = BeautifulSoup(html, "html.parser")

    # One script of ours, nothing from elsewhere.
    assert len(page.find_all("script")) == 1
    for name in ("src", "href", "xlink:href", "action", "data"):
        assert {tag[name] for tag in page.find_all(attrs={name: True})} <= {"data:,"}
    assert not re.search(r"https?://|url\(|@import", html)

    languages, scripts = len(LANGUAGES), len({one.script for one in LANGUAGES.values()})
    counts = {"tr": languages + 1, "td": 10 * languages, "rect": 3 * 2 * scripts}
    # An article a message at most.
    counts["article"] = 3
    assert {name: len(page.find_all(name)) for name in counts} == counts
    names = [language.name for language in LANGUAGES.values()]
    shown = ("61.3 %", "58.8 %", "3.1 %", "25.0 %", "474,014 in 107 <languages>", ATTACK)
    assert [text for text in (*names, *shown) if text not in page.get_text()] == []

    directions = set(re.findall(r'dir="(\w+)" lang="(\w+)"', html))
    rtl = {code for way, code in directions if way == "rtl"}
    assert rtl and rtl == {code for _, code in directions if code in ("ar", "he")}
    # The same again, in place of the old one.
    assert write(tmp_path / "report.html", accuracies) == html
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_neighbours_are_of_other_languages_and_nearest_first():
    angles = np.radians([0, 5, 10, 20, 90, 2])
    texts = [("one", "en", 0), ("eins", "de", 0), ("un", "fr", 0), ("two", "en", 1)]
    texts += [("zwei", "de", 1), ("one", "nl", 0)]
    sentences = [Sentence(*one) for one in texts]
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    found = find_neighbours(sentences, vectors, count=2)
    # Not the English "two", nor the Dutch "one" that reads the same.
    assert [index for index, _ in found[0]] == [1, 2]
    assert [cosine for _, cosine in found[0]] == pytest.approx(np.cos(np.radians([5, 10])))
    assert [index for index, _ in found[4]] == [3, 2]
    assert len(find_neighbours(sentences, vectors, count=9)[0]) == 3


def test_table_has_the_figures(accuracies):
    lines = format_table(*accuracies).splitlines()
    assert max(map(len, lines)) <= 100
    rows = [line.split() for line in lines[3:-2]]
    assert len(rows) == len(LANGUAGES) - 1
    # The best first.
    assert rows[0] == ["af", "Afrikaans", "2", "90.0", "80.0", "5.0", "100.0", "33.3", "0.0"]
    assert lines[-1].split()[0] == "average"
    assert lines[-1].split()[1:] == ["61.3", "58.8"] + ["3.1", "4.2", "25.0", "12.5"]


def test_sentences_are_the_messages_in_most_languages(tmp_path):
    pairs = {
        "de": [("Save this page now", "Sichern"), ("Open the door", "Tür auf")],
        "fr": [("Open the door.", "Ouvrez"), ("Open the old door", "Vieille porte")],
        "ru": [("Open the door", "Откройте"), ("Open the old door", "Старую дверь")],
    }
    for code, rows in pairs.items():
        with gzip.open(tmp_path / f"{code}.tsv.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{english}\t{foreign}\n" for english, foreign in rows)
    # The same message with a full stop is one; the one like it in wording is passed over.
    door = {"en": "Open the door", "de": "Tür auf", "fr": "Ouvrez", "ru": "Откройте"}
    chosen = [door, {"en": "Save this page now", "de": "Sichern"}]
    expected = [(text, code, n) for n, one in enumerate(chosen) for code, text in one.items()]
    assert choose_sentences(tmp_path, messages=2) == expected
