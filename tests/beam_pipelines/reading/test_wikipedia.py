"""Dumps of Wikipedia: their articles, markup and templates, several scripts, damage."""

import bz2
from xml.sax.saxutils import escape

import pytest

from beam_pipelines import filter_monolingual
from beam_pipelines.reading.readers import read_file, records_and_errors
from beam_pipelines.reading.wikipedia import plain_text
from beam_pipelines.records import HOLE, Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import describe

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


def dump(tmp_path, *pages, name="dewiki-latest-pages-articles.xml.bz2", keep=None):
    path = tmp_path / name
    data = (SITE + "".join(pages) + "</mediawiki>\n").encode()
    if name.endswith(".bz2"):
        # In several streams, as the multistream dumps are.
        data = bz2.compress(data[:400]) + bz2.compress(data[400:])
    path.write_bytes(data[:keep])
    return describe(str(path))


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("'''Bern''' ist eine ''Stadt''.", "Bern ist eine Stadt."),
        ("Der [[Rhein]] und die [[Aare|Aare bei Bern]].", "Der Rhein und die Aare bei Bern."),
        ("Satz.<ref>Quelle 1</ref> Noch einer.<ref name='a' />", "Satz. Noch einer."),
        ("{{Infobox|Name=Bern}}Text {{lang|fr|mot}} Ende.", "Text mot Ende."),
        ("[[Datei:Bern.jpg|mini|Ein Bild]]Text.[[Kategorie:Stadt]]", "Text."),
        ("Text.[[fr:Berne]]", "Text."),
        ("Siehe [[:Kategorie:Stadt]].", "Siehe :Kategorie:Stadt."),
        ("<!-- verborgen -->Text.", "Text."),
        ("== Lage ==\nText.", "Lage\nText."),
        ("Text.\n{| class='wikitable'\n|-\n| Zelle\n|}\nMehr.", "Text.\nMehr."),
        ("'''東京'''は[[日本]]の首都である。<ref>注</ref>", "東京は日本の首都である。"),
        # Templates that carry text.
        ("It had {{formatnum:6000}} people.", "It had 6000 people."),
        ("It is {{convert|5|km|mi|abbr=on}} long.", "It is 5 km long."),
        ("He is {{cvt|5|ft|6|in|cm|0}} tall.", "He is 5 ft 6 in tall."),
        ("So {{as of|2011|May|lc=y}} it is.", "So as of May 2011 it is."),
        ("A {{lang|fr|''mot''}}, a {{lang-de|Wort}}, {{langx|ru|слово}}.", "A mot, a Wort, слово."),
        ("A {{nowrap|{{abbr|km|kilometre}} {{small|long}}}} way.", "A km long way."),
        (
            "{{USS|Enterprise|CV-6}}, a {{sclass|York|carrier}}.",
            "USS Enterprise, a York-class carrier.",
        ),
        ("One{{snd}}two{{nbsp}}three, the dogs{{'}} own.", "One – two three, the dogs' own."),
        ("Il y a {{unité|25|km}} et {{nombre|6000|habitants}}.", "Il y a 25 km et 6000 habitants."),
        ("Au {{s|XIX}} et au {{XVe siècle}}, {{Ier}}.", "Au XIXe siècle et au XVe siècle, Ier."),
        ("Живёт в {{нп5|Город|городе|en|City}}.", "Живёт в городе."),
        ("{{読み仮名|東京|とうきょう}}は{{仮リンク|街|en|Town}}である。", "東京は街である。"),
        ("[[A|a{{nbsp}}b]] and [http://c {{small|d}}].", "a b and d."),
        # Other templates are holes in sentences.
        ("It had {{population|x}} people in {{year}}.", f"It had {HOLE} people in {HOLE}."),
        ("A {{small|great {{thing}}}} is.", f"A great {HOLE} is."),
        ("[[X|{{thing}}]] is {{#if:a|b}}.", f"{HOLE} is {HOLE}."),
        ("Let <math>x < 1</math> and <chem>H2O</chem> be.", f"Let {HOLE} and {HOLE} be."),
        ("A {{thing\n|a=1\n}} is.", f"A {HOLE} is."),
        ("{{未知|東京}}は首都。次の文。{{未知}}都市。", f"{HOLE}は首都。次の文。{HOLE}都市。"),
        # No part of a sentence.
        ("He died.{{sfn|A|2001}} He lived.{{thing}} So.", "He died. He lived. So."),
        ("In 1990,{{thing}} he{{note}} left{{citation needed}}.", "In 1990, he left."),
        ("{{thing}}\nText.\n{{Coord|1|2}}", "Text."),
        ("{{Kasten\n|a=1\n}}'''Bern''' ist.", "Bern ist."),
        ("{{Infobox town}}Bern ({{IPA|bern}}; {{x|(y)}}) is ({{lang|fr|b}}).", "Bern is (b)."),
        ("'''東京'''（{{発音}}）は首都。", "東京は首都。"),
        # Tags between words.
        ("work<br>before<br/>it<BR />all</br>ends.", "work before it all ends."),
        ("One.<br><br />Two.", "One.\nTwo."),
        ("東京<br>は首都。", "東京は首都。"),
        ("one<p>two</p>three<hr>four<p class='a'>five", "one\ntwo\nthree\nfour\nfive"),
        ("one\n{| class='a'\n| b<br>c || {{x}}\n|}\ntwo", "one\ntwo"),
        ("two<table><tr><td>c</td></tr></table>three", "two\nthree"),
        ("5&nbsp;km&#160;and&ensp;more&thinsp;or less", "5 km and more or less"),
        ("W<b>or</b>t H<sub>2</sub>O <span>x</span>", "Wort H2O x"),
    ],
)
def test_plain_text(markup, text):
    assert plain_text(markup, NAMESPACES) == text


def test_articles_alone_are_read(tmp_path):
    for name in ("dewiki-20260101-pages-articles1.xml-p1p41242.bz2", "dewiki-x.xml"):
        others = page("Eine Diskussion.", ns=1), page("#WEITERLEITUNG [[T]]", redirect=True)
        first = page("Erster [[Datei:A.jpg|mini]]Artikel.")
        file = dump(tmp_path, first, *others, page("Zweiter Artikel."), name=name)
        articles = [Document("Erster Artikel.", "de"), Document("Zweiter Artikel.", "de")]
        assert list(read_file(file)) == articles


@pytest.mark.parametrize("name", ["dewiki-x.xml.bz2", "dewiki-x.xml"])
def test_a_truncated_dump_is_an_error(tmp_path, name):
    pages = [page(f"Artikel {number}. " + "Wort " * 50) for number in range(20)]
    file = dump(tmp_path, *pages, name=name, keep=-60)
    *articles, error = records_and_errors(file)
    assert isinstance(error, InputError) and error.path == file.path
    assert len(articles) < 20
    no_articles = f"{SITE}{page('Text.', ns=1)}</mediawiki>".encode()
    no_encoding = b'<?xml version="1.0" encoding="klingon"?>\n<mediawiki></mediawiki>'
    for content in (b"", b"no XML at all", b"\x00\xff", no_articles, no_encoding):
        compress = bz2.compress if name.endswith(".bz2") and len(content) > 9 else bytes
        (tmp_path / name).write_bytes(compress(content))
        with pytest.raises(InputError, match=r"damaged or truncated|has no articles"):
            list(read_file(file))


def test_job_makes_sentences_of_articles(tmp_path):
    sentence = "Der Fluss fließt durch die {} Stadt im Norden des Landes."
    text = " ".join(sentence.format(word) for word in ("alte", "neue", "{{x}}", "große", "kleine"))
    pages = page(f"== Lage ==\n{text}\n* Rhein"), page("Kurz."), page("<ref>" * 300)
    report = filter_monolingual.run(
        [dump(tmp_path, *pages).path], str(tmp_path / "out"), max_bad_records=1
    )
    row = report["languages"]["de"]
    # The heading, the item of the list and the page of one word do not end like a sentence or
    # have too few words.
    assert (row["read"], row["kept"]) == (9, 4)
    assert {reason: number for reason, number in row["dropped"].items() if number} == {
        **{"bad_record": 1, "missing_text": 1, "no_terminal_punctuation": 2, "few_words": 1}
    }
    examples = (tmp_path / "out" / "examples.md").read_text(encoding="utf-8")
    assert "## few_words\n\n| language_code | text |\n| --- | --- |\n| de | Kurz. |\n" in examples
    assert HOLE not in examples
    # Sentences around a dropped one are no neighbours.
    file = dump(tmp_path, page(text), name="dewiki-x.xml")
    report = filter_monolingual.run([file.path], str(tmp_path / "two"), neighbours=True, c4=False)
    assert report["languages"]["de"]["kept"] == 2


@pytest.mark.parametrize(
    "opener",
    [
        *("[http://", "<ref>", "{{a|", "[[a|", "<b>", "<!--", "<nowiki>", "<span style='", "<a b="),
        *("{|\n|", "<ref><br/>", "<ref></b>", "{{{a|}}", "<REF name='a'>"),
    ],
)
def test_markup_without_end_is_one_bad_record(tmp_path, opener):
    pages = page("Before."), page(opener * 20_000, title="Long"), page("After.")
    file = dump(tmp_path, *pages, name="enwiki-x.xml")
    before, error, after = records_and_errors(file)
    assert (before, after) == (Document("Before.", "en"), Document("After.", "en"))
    assert isinstance(error, InputError)
    assert (error.path, "'Long'" in error.problem) == (file.path, True)


def test_many_of_anything_that_ends():
    for closed in (
        *("<ref>a</ref>", "<ref name='a'/>", "{{a|{{b}}}}", "[[a|b]]", "[http://a b]", "<br>"),
        *("<li>x", "<p>x", "<math>1<x<y</math>", "<!-- a -->", "{|\n|a\n|}\n", "<b>x</b>"),
    ):
        assert plain_text(closed * 300 + "\nText.", NAMESPACES).endswith("Text."), closed
