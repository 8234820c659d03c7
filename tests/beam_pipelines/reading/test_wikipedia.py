"""Dumps of Wikipedia: a real one in small, several scripts, damage in the middle."""

import bz2
from xml.sax.saxutils import escape

import pytest

from beam_pipelines import filter_monolingual
from beam_pipelines.reading.readers import read_file, records_and_errors
from beam_pipelines.reading.wikipedia import plain_text
from beam_pipelines.records.records import HOLE, Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import find_corpus_files

NAMESPACES = frozenset(("file", "image", "category", "media", "datei", "kategorie", "файл"))

SITE = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de"><siteinfo>
<namespaces><namespace key="0" /><namespace key="6">Datei</namespace>
<namespace key="14">Kategorie</namespace></namespaces></siteinfo>
"""


def page(text, *, title="T", ns=0, redirect=False):
    mark = '<redirect title="X" />' if redirect else ""
    return (
        f"<page><title>{title}</title><ns>{ns}</ns><id>1</id>{mark}<revision><id>2</id>"
        f"<text>{escape(text)}</text></revision></page>\n"
    )


def dump_file(tmp_path, *pages, name="dewiki-latest-pages-articles.xml.bz2", keep=None):
    path = tmp_path / name
    data = (SITE + "".join(pages) + "</mediawiki>\n").encode()
    if name.endswith(".bz2"):
        # In several streams, as the multistream dumps are.
        data = bz2.compress(data[:400]) + bz2.compress(data[400:])
    path.write_bytes(data[:keep])
    [file] = find_corpus_files([str(path)], formats=("wikipedia",))
    return file


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("'''Bern''' ist eine ''Stadt''.", "Bern ist eine Stadt."),
        ("Der [[Rhein]] und die [[Aare|Aare bei Bern]].", "Der Rhein und die Aare bei Bern."),
        ("Ein [https://example.org Verweis] hier.", "Ein Verweis hier."),
        ("Satz.<ref>Quelle 1</ref> Noch einer.<ref name='a' />", "Satz. Noch einer."),
        ("{{Infobox|Name=Bern}}Text {{lang|fr|mot}} Ende.", "Text mot Ende."),
        ("[[Datei:Bern.jpg|mini|Ein Bild]]Text.[[Kategorie:Stadt]]", "Text."),
        ("Text.[[fr:Berne]]", "Text."),
        ("Siehe [[:Kategorie:Stadt]].", "Siehe :Kategorie:Stadt."),
        ("<!-- verborgen -->Text.", "Text."),
        ("== Lage ==\nText.", "Lage\nText."),
        ("Text.\n{| class='wikitable'\n|-\n| Zelle\n|}\nMehr.", "Text.\nMehr."),
        ("__NOTOC__\nText.", "Text."),
        ("Text <math>x^2</math> weiter.", f"Text {HOLE} weiter."),
        ("5&nbsp;km &amp; mehr.", "5 km & mehr."),
        ("'''Москва''' — [[столица]] [[Файл:Герб.svg]]России.", "Москва — столица России."),
        ("'''東京'''は[[日本]]の首都である。<ref>注</ref>", "東京は日本の首都である。"),
        ("'''القاهرة''' هي [[عاصمة]] [[مصر|مصر العربية]].", "القاهرة هي عاصمة مصر العربية."),
        ("", ""),
    ],
)
def test_plain_text(markup, text):
    assert plain_text(markup, NAMESPACES) == text


@pytest.mark.parametrize("name", ["dewiki-20260101-pages-articles.xml.bz2", "dewiki-x.xml"])
def test_articles_alone_are_read(tmp_path, name):
    file = dump_file(
        tmp_path,
        page("Erster [[Datei:A.jpg|mini]]Artikel."),
        page("Eine Diskussion.", ns=1),
        page("#WEITERLEITUNG [[T]]", redirect=True),
        page("Zweiter Artikel."),
        name=name,
    )
    assert list(read_file(file)) == [
        Document("Erster Artikel.", "de"),
        Document("Zweiter Artikel.", "de"),
    ]


@pytest.mark.parametrize("name", ["dewiki-x.xml.bz2", "dewiki-x.xml"])
def test_a_truncated_dump_is_an_error(tmp_path, name):
    pages = [page(f"Artikel {number}. " + "Wort " * 50) for number in range(20)]
    file = dump_file(tmp_path, *pages, name=name, keep=-60)
    *articles, error = records_and_errors(file)
    assert isinstance(error, InputError)
    assert error.problem.startswith("the dump is damaged or truncated")
    assert error.path == file.path
    assert len(articles) < 20
    report = filter_monolingual.run([file.path], str(tmp_path / "out"), max_bad_records=1)
    assert report["total"]["dropped"]["bad_record"] == 1
    with pytest.raises(InputError, match="damaged or truncated"):
        filter_monolingual.run([file.path], str(tmp_path / "none"))


@pytest.mark.parametrize("content", [b"", b"no XML at all", b"\x00\xff"])
@pytest.mark.parametrize("name", ["dewiki-x.xml.bz2", "dewiki-x.xml"])
def test_no_dump_at_all(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(content)
    [file] = find_corpus_files([str(path)], formats=("wikipedia",))
    with pytest.raises(InputError, match=r"damaged or truncated|has no articles"):
        list(read_file(file))


def test_no_articles(tmp_path):
    with pytest.raises(InputError, match="the dump has no articles"):
        list(read_file(dump_file(tmp_path, page("Diskussion.", ns=1))))


def test_job_makes_sentences_of_articles(tmp_path):
    sentence = "Der Fluss fließt durch die {} Stadt im Norden des Landes."
    text = " ".join(sentence.format(word) for word in ("alte", "neue", "große", "kleine"))
    file = dump_file(tmp_path, page(f"== Lage ==\n{text}\n* Rhein"), page("Kurz."))
    report = filter_monolingual.run([file.path], str(tmp_path / "out"))
    row = report["languages"]["de"]
    # The heading, the item of the list and the page of one word do not end like a sentence or
    # have too few words.
    assert (row["read"], row["kept"]) == (7, 4)
    assert row["dropped"]["no_terminal_punctuation"] == 2
    assert row["dropped"]["few_words"] == 1
    examples = (tmp_path / "out" / "examples.md").read_text(encoding="utf-8")
    assert "## few_words\n\n| language_code | text |\n| --- | --- |\n| de | Kurz. |\n" in examples
