"""Articles with templates, tags and formulas in their sentences, and markup that never ends."""

import bz2
from xml.sax.saxutils import escape

import pytest

from beam_pipelines import filter_monolingual
from beam_pipelines.reading.readers import records_and_errors
from beam_pipelines.reading.wikipedia import plain_text
from beam_pipelines.records.records import HOLE, Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import MONOLINGUAL, WIKIPEDIA, CorpusFile

NAMESPACES = frozenset(("file", "image", "category"))


def dump_of(path, *articles, encoding="UTF-8"):
    pages = "".join(
        f"<page><title>T{number}</title><ns>0</ns><revision><text>{escape(text)}</text></revision>"
        "</page>\n"
        for number, text in enumerate(articles)
    )
    data = f'<?xml version="1.0" encoding="{encoding}"?>\n<mediawiki>{pages}</mediawiki>'.encode()
    path.write_bytes(bz2.compress(data) if path.suffix == ".bz2" else data)
    return CorpusFile(str(path), "en", MONOLINGUAL, WIKIPEDIA)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("It had {{formatnum:6000}} people.", "It had 6000 people."),
        ("It is {{convert|5|km|mi|abbr=on}} long.", "It is 5 km long."),
        ("From {{convert|5|to|10|C}} on.", "From 5 to 10 °C on."),
        ("He is {{cvt|5|ft|6|in|cm|0}} tall.", "He is 5 ft 6 in tall."),
        ("Built {{circa|1500}} or {{circa}} 1600.", "Built c. 1500 or c. 1600."),
        ("So {{as of|2011|May|lc=y}} it is.", "So as of May 2011 it is."),
        (
            "A {{lang|fr|''mot''}}, a {{lang-de|Wort}}, a {{langx|ru|слово}}.",
            "A mot, a Wort, a слово.",
        ),
        ("A {{transl|ru|ISO|slovo}} and {{transl|ru|da}}.", "A slovo and da."),
        ("A {{nowrap|{{abbr|km|kilometre}} {{small|long}}}} way.", "A km long way."),
        ("At {{val|5.3|u=km/s}}.", "At 5.3 km/s."),
        (
            "The {{USS|Enterprise|CV-6}} is a {{sclass|Yorktown|carrier}}.",
            "The USS Enterprise is a Yorktown-class carrier.",
        ),
        ("One{{snd}}two{{nbsp}}three, the dogs{{'}} own.", "One – two three, the dogs' own."),
        ("Il y a {{unité|25|km}} et {{nombre|6000|habitants}}.", "Il y a 25 km et 6000 habitants."),
        (
            "Au {{s|XIX}} et au {{XVe siècle}}, Napoléon {{Ier}}.",
            "Au XIXe siècle et au XVe siècle, Napoléon Ier.",
        ),
        ("En el {{siglo|XIX||s}}, {{unidad|3|m}}.", "En el siglo XIX, 3 m."),
        ("Живёт в {{нп5|Город|городе|en|City}}.", "Живёт в городе."),
        ("{{読み仮名|東京|とうきょう}}は{{仮リンク|街|en|Town}}である。", "東京は街である。"),
        ("北京是{{le|首都|Capital}}。", "北京是首都。"),
        ("[[A|a{{nbsp}}b]] and [http://c {{small|d}}].", "a b and d."),
    ],
)
def test_templates_that_carry_text(markup, text):
    assert plain_text(markup, NAMESPACES) == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("It had {{population|x}} people in {{year}}.", f"It had {HOLE} people in {HOLE}."),
        ("A {{small|great {{thing}}}} is.", f"A great {HOLE} is."),
        ("[[X|{{thing}}]] is {{#if:a|b}}.", f"{HOLE} is {HOLE}."),
        ("Let <math>x < 1</math> and <chem>H2O</chem> be.", f"Let {HOLE} and {HOLE} be."),
        ("A {{thing\n|a=1\n}} is.", f"A {HOLE} is."),
        ("مدينة {{شيء}} كبيرة.", f"مدينة {HOLE} كبيرة."),
        ("दिल्ली {{कुछ}} है।", f"दिल्ली {HOLE} है।"),
        ("{{未知|東京}}は首都。次の文。{{未知}}都市。", f"{HOLE}は首都。次の文。{HOLE}都市。"),
        ("ไทย{{บางสิ่ง}}ไทย", f"ไทย{HOLE}ไทย"),
        ("北京{{未知}}首都。", f"北京{HOLE}首都。"),
        # No part of a sentence.
        ("He died.{{sfn|A|2001}} He lived.{{thing}} So.", "He died. He lived. So."),
        ("In 1990,{{thing}} he{{note}} left{{citation needed}}.", "In 1990, he left."),
        ("Er kam.<ref>{{Literatur|Titel=A}}</ref> {{Belege fehlen}}", "Er kam."),
        ("Text. {{thing}}", "Text."),
        ("東京は首都。{{要出典}}次の文。{{未知}}", "東京は首都。次の文。"),
        ("{{thing}}\nText.\n{{Coord|1|2}}", "Text."),
        ("{{Kasten\n|a=1\n}}'''Bern''' ist.", "Bern ist."),
        ("{{Infobox town}}Bern ({{IPA|bern}}; {{x|(y)}}) is ({{lang|fr|b}}).", "Bern is (b)."),
        ("'''東京'''（{{発音}}）は首都。", "東京は首都。"),
    ],
)
def test_other_templates_are_holes_in_sentences(markup, text):
    assert plain_text(markup, NAMESPACES) == text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("work<br>before<br/>it<BR />all</br>ends.", "work before it all ends."),
        ("One.<br><br />Two.", "One.\nTwo."),
        ("東京<br>は首都。", "東京は首都。"),
        ("one<p>two</p>three<hr>four<p class='a'>five", "one\ntwo\nthree\nfour\nfive"),
        ("<ul><li>one<li>two</li></ul><div style='x'>three</div>", "one\ntwo\nthree"),
        (
            "one\n{| class='a'\n| b<br>c || {{x}}\n|}\ntwo<table><tr><td>c</td></tr></table>three",
            "one\ntwo\nthree",
        ),
        ("5&nbsp;km&#160;and&ensp;more&thinsp;or less", "5 km and more or less"),
        ("W<b>or</b>t H<sub>2</sub>O <span>x</span>", "Wort H2O x"),
    ],
)
def test_tags_between_words(markup, text):
    assert plain_text(markup, NAMESPACES) == text


def test_job_drops_the_sentence_with_a_hole_alone(tmp_path):
    sentence = "The {} river flows through the old town in the north of the country."
    words = ["first", "second", "third", "fourth"]
    text = " ".join(sentence.format(word) for word in words)
    text = text.replace("third", "{{Unknown|third}}") + "\n" + sentence.format("{{thing}}")
    file = dump_of(tmp_path / "enwiki-x.xml.bz2", text + "\n\n" + sentence.format("fifth"))
    report = filter_monolingual.run([file.path], str(tmp_path / "out"), c4=False)
    row = report["languages"]["en"]
    assert (row["read"], row["kept"], row["dropped"]["missing_text"]) == (6, 4, 2)
    assert HOLE not in (tmp_path / "out" / "examples.md").read_text(encoding="utf-8")
    report = filter_monolingual.run([file.path], str(tmp_path / "pairs"), neighbours=True, c4=False)
    # Sentences around a dropped one are no neighbours.
    assert report["languages"]["en"]["kept"] == 1


@pytest.mark.parametrize(
    "opener",
    [
        "[http://",
        "<ref>",
        "{{a|",
        "[[a|",
        "<b>",
        "<!--",
        "<nowiki>",
        "<span style='",
        "<a b=",
        "{|\n|",
    ]
    + ["<ref><br/>", "<ref></b>", "{{{a|}}", "<REF name='a'>"],
)
def test_markup_without_end_is_one_bad_record(tmp_path, opener):
    file = dump_of(tmp_path / "enwiki-x.xml", "Before.", opener * 20_000, "After.")
    before, error, after = records_and_errors(file)
    assert (before, after) == (Document("Before.", "en"), Document("After.", "en"))
    assert isinstance(error, InputError)
    assert (error.path, "T1" in error.problem) == (file.path, True)


@pytest.mark.parametrize(
    "closed",
    ["<ref>a</ref>", "<ref name='a'/>", "{{a|{{b}}}}", "[[a|b]]", "[http://a b]", "<br>", "<li>x"]
    + ["<p>x", "<math>1<x<y</math>", "<!-- a -->", "{|\n|a\n|}\n", "<b>x</b>"],
)
def test_many_of_anything_that_ends(closed):
    assert plain_text(closed * 300 + "\nText.", NAMESPACES).endswith("Text.")


def test_dump_in_parts_and_unknown_encoding(tmp_path):
    file = dump_of(tmp_path / "enwiki-pages-articles1.xml-p1p41242.bz2", "Text.")
    assert list(records_and_errors(file)) == [Document("Text.", "en")]
    file = dump_of(tmp_path / "enwiki-x.xml", "Text.", encoding="klingon")
    [error] = records_and_errors(file)
    assert isinstance(error, InputError)
