"""TMX files: units of any languages, codes inside segments, damage, and entities."""

import gzip

import pytest

from beam_pipelines import filter_bitext
from beam_pipelines.reading.readers import read_file
from beam_pipelines.records.records import Pair
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import find_corpus_files

HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header/><body>\n'
FOOTER = "</body></tmx>\n"


def unit(**texts):
    variants = (
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, text in texts.items()
    )
    return f"<tu>{''.join(variants)}</tu>\n"


def read(path):
    [file] = find_corpus_files([str(path)])
    return list(read_file(file))


def write(path, *units, footer=FOOTER):
    path.write_text(HEADER + "".join(units) + footer, encoding="utf-8")
    return path


def test_units(tmp_path):
    path = write(
        tmp_path / "memory.tmx",
        unit(en="Good morning.", de="Guten Morgen."),
        unit(ja="おはよう。", en_US="Good\n   morning.", ru="Доброе утро."),
        unit(de="Hallo", fr="Salut"),
        unit(en="Alone"),
        unit(en="Hello", xx="Adiu"),
        unit(en="A &lt; B &amp; C", de="A &lt; B &amp; C"),
    )
    assert read(path) == [
        Pair("Good morning.", "Guten Morgen.", "de"),
        Pair("Good morning.", "おはよう。", "ja"),
        Pair("Good morning.", "Доброе утро.", "ru"),
        Pair("Hallo", "Salut", "de-fr"),
        Pair("Alone", "", "und"),
        Pair("Hello", "Adiu", "xx"),
        Pair("A < B & C", "A < B & C", "de"),
    ]
    report = filter_bitext.run([str(path)], str(tmp_path / "out"))
    assert report["total"]["read"] == 7
    assert report["total"]["dropped"]["other_language"] == 3


def test_codes_in_a_segment_are_no_text(tmp_path):
    path = write(
        tmp_path / "memory.tmx",
        unit(
            en='Press <bpt i="1">&lt;b&gt;</bpt>OK<ept i="1">&lt;/b&gt;</ept> <hi>now</hi>.',
            de="Drücken Sie <ph>{0}</ph><hi>jetzt</hi> OK.",
        ),
    )
    assert read(path) == [Pair("Press OK now.", "Drücken Sie jetzt OK.", "de")]


@pytest.mark.parametrize(
    ("segment", "text"),
    [
        ("work<ph/>before", "work before"),
        ("work<ut/><x/>before", "work before"),
        ("work<it pos='begin'/>before", "work before"),
        ("End.<ph>&lt;br/&gt;</ph>Next", "End. Next"),
        ("слово<ph type='image'/>слово", "слово слово"),
        ("हिन्दी<ph>{0}</ph>भाषा", "हिन्दी भाषा"),
        (r"a<ph>\n</ph>b", "a b"),
        (r"a<ut>\par </ut>b", "a b"),
        ("Eins<ept>&lt;/p&gt;</ept><bpt>&lt;p&gt;</bpt>Zwei", "Eins Zwei"),
        ("a<br/>b", "a b"),
        # Inside a word.
        ("<bpt i='1'/>W<ept i='1'/>ort", "Wort"),
        ("<bpt i='1'>&lt;b&gt;</bpt>W<ept i='1'>&lt;/b&gt;</ept>ort", "Wort"),
        ("<ph>&lt;b&gt;</ph>W<ph>&lt;/b&gt;</ph>ort", "Wort"),
        (r"<ut>{\b </ut>W<ut>}</ut>ort", "Wort"),
        ("W<ph type='bold'/>ort", "Wort"),
        ("W<hi type='bold'>or</hi>t", "Wort"),
        ("H<sub>2</sub>O", "H2O"),
        # Beside punctuation and spaces.
        ("Press <ph>{0}</ph>, then (<ph/>this)<ph/>.", "Press , then (this)."),
        ("a <ph/> b", "a b"),
        ("l'<ph/>eau", "l'eau"),
        # Without spaces.
        ("東京<ph/>は<ph>&lt;br&gt;</ph>首都。<ph/>次", "東京は首都。次"),
        ("สวัสดี<ph/>ครับ", "สวัสดีครับ"),
        ("iPhone<ph/>を", "iPhoneを"),
        # Text inside a code is another text.
        ("a<ph>&lt;img alt='<sub>Bild</sub>'&gt;</ph>b", "a b"),
    ],
)
def test_codes_separate_words_or_not(tmp_path, segment, text):
    path = write(tmp_path / "memory.tmx", unit(en=segment, de="Text"))
    assert read(path) == [Pair(text, "Text", "de")]


def test_compressed_and_long(tmp_path):
    """More text than is read at once."""
    units = [unit(en=f"Number {number}", de=f"Nummer {number}") for number in range(20_000)]
    path = tmp_path / "memory.tmx.gz"
    path.write_bytes(gzip.compress((HEADER + "".join(units) + FOOTER).encode()))
    found = read(path)
    assert len(found) == 20_000
    assert found[-1] == Pair("Number 19999", "Nummer 19999", "de")


ENTITY = '<?xml version="1.0"?>\n<!DOCTYPE tmx [<!ENTITY a "aaaa">]>\n<tmx><body/></tmx>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HEADER + unit(en="a", de="b"), ":4: the TMX file cannot be read .no element found"),
        (HEADER + "<tu></tuv>", ":3: .*mismatched tag"),
        (HEADER + FOOTER, "no units"),
        ("<html><body/></html>", ":1: .*not <tmx>"),
        (ENTITY, ":2: defines the entity 'a'"),
        ("", "cannot be read .no element"),
    ],
)
def test_damaged(tmp_path, content, message):
    path = tmp_path / "memory.tmx"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read(path)


def test_what_follows_damage_is_one_bad_record(tmp_path):
    path = write(tmp_path / "memory.tmx", unit(en="Good morning.", de="Guten Morgen."), footer="")
    report = filter_bitext.run([str(path)], str(tmp_path / "out"), max_bad_records=1)
    assert report["total"]["kept"] == 1
    assert report["total"]["dropped"]["bad_record"] == 1
