"""The demo's report: what it says, that it says it safely, and how its sentences are chosen."""

import gzip
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from labse_tf.demo.report import choose_sentences, format_table, write_report
from labse_tf.demo.report_map import Sentence, find_neighbours, language_colours, project
from labse_tf.languages import LANGUAGES

VOID = {"meta", "link", "br"}
ATTACK = "<script>alert('x')</script> & \"quoted\""
HELLO = {
    "en": "Good morning, my friends",
    "de": "Guten Morgen, meine Freunde",
    "ru": "Доброе утро, друзья мои",
    "ar": "صباح الخير يا أصدقائي",
    "he": "בוקר טוב, חברים שלי",
    "hi": "सुप्रभात, मेरे दोस्तों",
    "ja": "おはようございます、皆さん",
    "zh": "早上好，我的朋友们",
}


class Page(HTMLParser):
    """Fails on tags that do not match; collects tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


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


def sentences_and_vectors():
    """Three messages in all languages of HELLO; each message has an axis of its own."""
    sentences, vectors = [], []
    generator = np.random.default_rng(0)
    for group in range(3):
        for code, text in HELLO.items():
            shown = ATTACK if (code, group) == ("de", 1) else f"{text} {group}"
            sentences.append(Sentence(shown, code, group))
            vectors.append(np.eye(8)[group] + 0.1 * generator.normal(size=8))
    vectors = np.array(vectors, np.float32)
    return sentences, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write(destination, accuracies, **changes):
    sentences, vectors = sentences_and_vectors()
    arguments = {
        "evaluation": accuracies[0],
        "table": accuracies[1],
        "metrics": {
            run: [{"step": step, "loss": loss / step, "accuracy": 0.5} for step in (10, 20)]
            for run, loss in (("table", 9), ("layers", 5))
        },
        "sentences": sentences,
        "vectors": vectors,
        "facts": {"Training pairs": "474,014 in 107 <languages>"},
        "destination": destination,
    }
    write_report(**(arguments | changes))
    return destination.read_text("utf-8")


def test_report_is_whole_safe_and_complete(tmp_path, accuracies):
    html = write(tmp_path / "report.html", accuracies)
    page = Page(html)

    # One script of ours, nothing from elsewhere.
    assert page.tags.count("script") == 1
    for name, value in page.attributes:
        if name in ("src", "href", "xlink:href", "action", "data"):
            assert value == "data:,"
    assert not re.search(r"https?://|url\(|@import", html)

    assert ATTACK in page.text and "474,014 in 107 <languages>" in page.text
    assert len(html) < 3_000_000
    for language in LANGUAGES.values():
        assert language.name in page.text
    assert page.tags.count("tr") == 1 + (len(LANGUAGES) - 1) + 1
    assert page.tags.count("td") == 10 * len(LANGUAGES)
    assert page.tags.count("circle") == 3 * (len(LANGUAGES) - 1) * 2 + 3 * len(HELLO)
    assert page.tags.count("polyline") == 2
    assert page.tags.count("article") == 3  # one a message at most
    for text in ("61.3 %", "58.8 %", "3.1 %", "25.0 %", "steps", "loss in nats"):
        assert text in page.text

    directions = set(re.findall(r'dir="(\w+)" lang="(\w+)"', html))
    rtl = {code for way, code in directions if way == "rtl"}
    assert rtl and rtl == {code for _, code in directions if code in ("ar", "he")}
    # The same again, in place of the old one.
    assert write(tmp_path / "report.html", accuracies) == html
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_report_without_metrics_or_without_vectors(tmp_path, accuracies):
    empty = {"table": [], "layers": []}
    page = Page(write(tmp_path / "report.html", accuracies, metrics=empty))
    assert "polyline" not in page.tags and "loss in nats" not in page.text
    with pytest.raises(ValueError, match="24 sentences, but 2 vectors"):
        write(tmp_path / "report.html", accuracies, vectors=np.ones((2, 8), np.float32))


def test_neighbours_are_of_other_languages_and_nearest_first():
    angles = np.radians([0, 5, 10, 20, 90, 2])
    sentences = [
        Sentence("one", "en", 0),
        Sentence("eins", "de", 0),
        Sentence("un", "fr", 0),
        Sentence("two", "en", 1),
        Sentence("zwei", "de", 1),
        Sentence("one", "nl", 0),
    ]
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    found = find_neighbours(sentences, vectors, count=2)
    # Not the English "two", nor the Dutch "one" that reads the same.
    assert [index for index, _ in found[0]] == [1, 2]
    assert [cosine for _, cosine in found[0]] == pytest.approx(np.cos(np.radians([5, 10])))
    assert [index for index, _ in found[4]] == [3, 2]
    assert len(find_neighbours(sentences, vectors, count=9)[0]) == 3


def test_projection_keeps_messages_together():
    sentences, vectors = sentences_and_vectors()
    places = project(vectors)
    assert places.min() == 0 and places.max() == 1
    groups = np.array([sentence.group for sentence in sentences])
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (groups[distances.argmin(axis=1)] == groups).all()


def test_every_language_has_a_colour_of_its_own():
    colours = language_colours(list(LANGUAGES))
    assert set(colours) == set(LANGUAGES)
    assert len(set(colours.values())) == len(LANGUAGES)


def test_table_has_the_figures(accuracies):
    lines = format_table(*accuracies).splitlines()
    assert max(map(len, lines)) <= 100
    rows = [line.split() for line in lines[3:-2]]
    assert len(rows) == len(LANGUAGES) - 1
    # The best first.
    assert rows[0] == ["af", "Afrikaans", "2", "90.0", "80.0", "5.0", "100.0", "33.3", "0.0"]
    assert lines[-1].split()[0] == "average"
    assert lines[-1].split()[1:] == ["61.3", "58.8"] + ["3.1", "4.2", "25.0", "12.5"]


def write_dev(folder, pairs):
    folder.mkdir()
    for code, rows in pairs.items():
        with gzip.open(folder / f"{code}.tsv.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{english}\t{foreign}\n" for english, foreign in rows)
    return folder


def test_sentences_are_the_messages_in_most_languages(tmp_path, monkeypatch):
    dev = write_dev(
        tmp_path / "dev",
        {
            "de": [("Save this page now", "Sichern"), ("Open the door", "Tür auf")],
            "fr": [("Open the door.", "Ouvrez"), ("Open the old door", "Vieille porte")],
            "ru": [("Open the door", "Откройте"), ("Open the old door", "Старую дверь")],
        },
    )
    # The same message with a full stop is one; the one like it in wording is passed over.
    first, *translations, last_english, last = choose_sentences(dev, messages=2)
    assert (first, last_english) == (
        Sentence("Open the door", "en", 0),
        Sentence("Save this page now", "en", 1),
    )
    found = {(one.text, one.language, one.group) for one in translations}
    assert found == {("Tür auf", "de", 0), ("Ouvrez", "fr", 0), ("Откройте", "ru", 0)}
    assert last == Sentence("Sichern", "de", 1)
    # Few sentences still show many languages.
    monkeypatch.setattr("labse_tf.demo.report.MAX_SENTENCES", 8)
    codes = ["de", "fr", "ru", "el", "ja", "ko"]
    rows = [("Open the door", "1"), ("Save this page now", "2")]
    dev = write_dev(tmp_path / "many", dict.fromkeys(codes, rows))
    sentences = choose_sentences(dev, messages=2)
    assert len(sentences) == 8 and {s.language for s in sentences} == {"en", *codes}
    assert choose_sentences(dev, messages=2) == sentences
