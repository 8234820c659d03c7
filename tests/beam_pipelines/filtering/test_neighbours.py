"""Neighbouring sentences through the filter job: a dropped sentence is a break."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beam_pipelines.filtering.prepare_text import TextSettings, find_neighbours, prepare
from beam_pipelines.filters import LINES
from beam_pipelines.filters.character_limits import TooShort
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records import Batch, Document
from labse_tf.cli.main import main
from labse_tf.files.corpus_files import find_corpus_files
from labse_tf.files.record_kinds import NEIGHBOURS, Neighbours

DOCUMENTS = {
    "de": [
        "Der Zug fährt um acht Uhr ab.",
        "Er kommt am Mittag an.",
        "Nein.",  # Too short.
        "Am Abend fährt er zurück.",
        "Die Reise dauert vier Stunden.",
        "",
        "Ein anderes Dokument beginnt hier.",
        "Der Zug fährt um acht Uhr ab.",
        "Er kommt am Mittag an.",  # The pair was there before.
    ],
    "th": ["วันนี้ฝนตกหนักมาก", "เราจึงอยู่บ้านทั้งวัน", "พรุ่งนี้จะไปตลาด"],
    "ru": ["Поезд отходит в восемь.", "", "Он приходит в полдень."],
}
PAGE = ["Река течёт с гор в море.", "Она очень широкая и глубокая.", "Летом вода в ней тёплая."]
PAIRS = {
    *(Neighbours(*both, "ru") for both in itertools.pairwise(PAGE)),
    Neighbours("Der Zug fährt um acht Uhr ab.", "Er kommt am Mittag an.", "de"),
    Neighbours("Am Abend fährt er zurück.", "Die Reise dauert vier Stunden.", "de"),
    Neighbours("Ein anderes Dokument beginnt hier.", "Der Zug fährt um acht Uhr ab.", "de"),
    Neighbours("วันนี้ฝนตกหนักมาก", "เราจึงอยู่บ้านทั้งวัน", "th"),
    Neighbours("เราจึงอยู่บ้านทั้งวัน", "พรุ่งนี้จะไปตลาด", "th"),
}


def filter_neighbours(folder, out, *options):
    command = ["corpus", "filter-monolingual", str(folder), "--neighbours", "--out", str(out)]
    return main([*command, *options])


def read_all(out):
    files = find_corpus_files([str(out)], kind=NEIGHBOURS)
    return [record for file in files for record in read_file(file)]


@pytest.fixture
def clean(tmp_path):
    """Made of text, and of a page beside it."""
    folder = tmp_path / "documents"
    folder.mkdir()
    for language, lines in DOCUMENTS.items():
        (folder / f"{language}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "ruwiki-latest-pages-articles.xml").write_text(
        "<mediawiki><page><title>T</title><ns>0</ns><id>1</id><revision><id>2</id>"
        f"<text>{' '.join(PAGE)}</text></revision></page></mediawiki>",
        "utf-8",
    )
    assert filter_neighbours(folder, tmp_path / "out") == 0
    return tmp_path / "out"


def test_text_and_pages(clean):
    found = read_all(clean)
    assert len(found) == len(PAIRS) and set(found) == PAIRS
    report = json.loads((clean / "report.json").read_text())
    dropped = report["languages"]["de"]["dropped"]
    assert report["languages"]["de"]["read"] == 6
    assert (dropped["short_line"], dropped["duplicate"], sum(dropped.values())) == (2, 1, 3)
    assert filter_neighbours(clean, clean.with_name("again")) == 0
    assert set(read_all(clean.with_name("again"))) == PAIRS


def test_a_line_that_cannot_be_read_is_a_break(tmp_path):
    path = tmp_path / "de.txt"
    lines = [b"Der erste Satz steht hier.", b"Gr\xfc\xdfe aus Wien.", b"Der dritte Satz steht da."]
    path.write_bytes(b"\n".join([*lines, b"Und der vierte danach."]) + b"\n")
    assert filter_neighbours(path, tmp_path / "out", "--max-bad-records", "1") == 0
    expected = Neighbours("Der dritte Satz steht da.", "Und der vierte danach.", "de")
    assert read_all(tmp_path / "out") == [expected]


def test_both_sentences_must_be_in_the_language(tmp_path):
    english = "This sentence is in another language than the others."
    german = "Dieser Satz ist in der Sprache, die der Name der Datei nennt."
    other = "Auch dieser Satz ist auf Deutsch geschrieben, wie der erste."
    path = tmp_path / "de.txt"
    path.write_text("\n".join([german, english, german, other, english]) + "\n", "utf-8")
    assert filter_neighbours(path, tmp_path / "out", "--identify") == 0
    assert read_all(tmp_path / "out") == [Neighbours(german, other, "de")]


def test_sentences_are_not_split(tmp_path, capfd):
    assert filter_neighbours(tmp_path, tmp_path / "out", "--split-sentences") != 0
    assert "leave out --split-sentences" in capfd.readouterr().err


def settings_of(*filters):
    return TextSettings({LINES: filters}, neighbours=True, c4=True)


def pairs_of(passages):
    return [pair[:2] for passage in passages for pair in find_neighbours(passage)]


def test_pages_are_split_and_a_dropped_line_is_a_break():
    page = "雨が降る。風が吹く。\n短\n雪が降る。春が来る。\n花が咲く。"
    passages, dropped = prepare(Batch("ja", [Document(page, "ja")]), settings_of(TooShort(3)))
    assert pairs_of(passages) == [
        ("雨が降る。", "風が吹く。"),
        ("雪が降る。", "春が来る。"),
        ("春が来る。", "花が咲く。"),
    ]
    assert dropped == {"too_short": [Neighbours("短", "", "ja")]}


LINES_OF_A_PAGE = st.lists(st.integers(0, 30).map(lambda n: f"w{'x' * n}."), min_size=1, max_size=8)


@given(st.lists(LINES_OF_A_PAGE, min_size=1, max_size=4))
def test_no_pair_crosses_a_page_or_a_dropped_line(pages):
    batch = Batch("en", [Document("\n".join(page), "en") for page in pages])
    passages, _ = prepare(batch, settings_of(TooShort(10)))
    assert pairs_of(passages) == [
        pair for page in pages for pair in itertools.pairwise(page) if min(map(len, pair)) >= 10
    ]
