"""TMX files: units of any languages, codes in segments, damage, encodings, and entities."""

import gzip
import io

import pytest

from beam_pipelines import filter_bitext
from beam_pipelines.reading.readers import read_file, records_and_errors
from beam_pipelines.reading.tmx import read_tmx
from beam_pipelines.records import Pair
from labse_tf.errors import InputError
from labse_tf.files import textio
from labse_tf.files.corpus_files import TMX, CorpusFile, describe

HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header/><body>\n'
FOOTER = "</body></tmx>\n"
TEXTS = [("Good morning.", "Guten Morgen."), ("Here is water.", "Voilà de l'eau."), ("Cat", "猫")]
GOOD = [Pair(english, other, "de") for english, other in TEXTS]


def unit(english, other, language="de", attributes=""):
    return (
        f'<tu{attributes}>\n<tuv xml:lang="en"><seg>{english}</seg></tuv>\n'
        f'<tuv xml:lang="{language}"><seg>{other}</seg></tuv></tu>\n'
    )


# Lines 3 to 5, 6 to 8, then from 9 what a test puts there, and one more.
FIRST, SECOND, LAST = (unit(*texts) for texts in TEXTS)


def unit_of(**texts):
    variants = (
        f'<tuv xml:lang="{language.replace("_", "-")}"><seg>{text}</seg></tuv>'
        for language, text in texts.items()
    )
    return f"<tu>{''.join(variants)}</tu>\n"


def file_of(tmp_path, content):
    path = tmp_path / "memory.tmx"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return describe(str(path))


def read_around(tmp_path, middle):
    """Returns the records and errors between the good units, which must all be read."""
    content = HEADER + FIRST + SECOND + middle + LAST + FOOTER
    records = list(records_and_errors(file_of(tmp_path, content)))
    assert [record for record in records if record in GOOD] == GOOD
    return [record for record in records if record not in GOOD]


def test_units_of_any_languages(tmp_path):
    cases = (
        (unit_of(en="Good day.", de="Guten Tag."), [("Good day.", "Guten Tag.", "de")]),
        (
            unit_of(ja="おはよう。", en_US="Good\n   day.", ru="Добрый день."),
            [("Good day.", "おはよう。", "ja"), ("Good day.", "Добрый день.", "ru")],
        ),
        (unit_of(de="Hallo", fr="Salut"), [("Hallo", "Salut", "de-fr")]),
        (unit_of(en="Alone"), [("Alone", "", "und")]),
        (unit_of(en="Hello", xx="Adiu"), [("Hello", "Adiu", "xx")]),
        (unit_of(en="A &lt; B &amp; C", de="A &lt; B &amp; C"), [("A < B & C", "A < B & C", "de")]),
    )
    units, pairs = zip(*cases, strict=True)
    file = file_of(tmp_path, HEADER + "".join(units) + FOOTER)
    assert list(read_file(file)) == sum(pairs, [])


# The text of a segment with codes, in a pair with "Text".
SEGMENTS = (
    ("Drücken Sie <ph>{0}</ph><hi>jetzt</hi> OK.", "Drücken Sie jetzt OK."),
    ("End.<ph>&lt;br/&gt;</ph>Next", "End. Next"),
    ("हिन्दी<ph>{0}</ph>भाषा", "हिन्दी भाषा"),
    (r"a<ph>\n</ph>b", "a b"),
    ("Eins<ept>&lt;/p&gt;</ept><bpt>&lt;p&gt;</bpt>Zwei", "Eins Zwei"),
    ("a<br/>b", "a b"),
    # Inside a word.
    ("<bpt i='1'>&lt;b&gt;</bpt>W<ept i='1'>&lt;/b&gt;</ept>ort", "Wort"),
    (r"<ut>{\b </ut>W<ut>}</ut>ort", "Wort"),
    ("W<hi type='bold'>or</hi>t", "Wort"),
    # Beside punctuation and spaces.
    ("Press <ph>{0}</ph>, then (<ph/>this)<ph/>.", "Press , then (this)."),
    ("l'<ph/>eau", "l'eau"),
    # Without spaces.
    ("東京<ph/>は<ph>&lt;br&gt;</ph>首都。<ph/>次", "東京は首都。次"),
    ("iPhone<ph/>を", "iPhoneを"),
    # Text inside a code is another text.
    ("a<ph>&lt;img alt='<sub>Bild</sub>'&gt;</ph>b", "a b"),
    ("<![CDATA[<b> &eacute;]]>", "<b> &eacute;"),
    ("caf&eacute;&nbsp;&Omega;", "café Ω"),
    ("a<!-- </tu> <tu> -->b", "ab"),
)
# How a unit is written, and its pair, if it is one.
A_B = unit("a", "b")
UNITS = (
    *((unit(segment, "Text"), Pair(text, "Text", "de")) for segment, text in SEGMENTS),
    (unit("a", "b", attributes=' tuid="1>2" note=\'"/>\''), Pair("a", "b", "de")),
    (f"<group>{A_B}</group>", Pair("a", "b", "de")),
    (A_B.replace('xml:lang="de"', 'lang="fr"'), Pair("a", "b", "fr")),
    (A_B.replace('xml:lang="de"', 'lang="fr" xml:lang="it"'), Pair("a", "b", "it")),
    ("<tu/>", Pair("", "", "und")),
    (f"<!-- {FIRST} -->\n", None),
    ("<!-- <tu> -->\n<!-- </tu> -->", None),
    (f"<?tool {FIRST} ?>", None),
    ('<x:tu xmlns:x="urn:x">text</x:tu>', None),
)


@pytest.mark.parametrize(("content", "pair"), UNITS)
def test_how_units_are_written(tmp_path, content, pair):
    assert read_around(tmp_path, content) == ([pair] if pair else [])


@pytest.mark.parametrize(
    ("damaged", "line"),
    [
        (unit("a\x01", "b"), 10),
        (unit("AT&T and Co", "b"), 10),
        (unit("R & B", "b").replace("\n", "\r\n"), 10),
        (unit("<b>a", "b"), 10),
        (unit("caf&eacut;", "b"), 10),
        (unit("a <!-- no end", "b"), None),
        (unit("a", "b", attributes=' tuid="1" tuid="2"'), 9),
        (unit("a", "b", attributes=' tuid="1'), None),
        (unit("a", "b").replace("</tu>", ""), 11),
        (unit("a", "b").replace("<tu>", "<t\x02u>"), 10),
        (unit("a", "b").replace("<tu>", ""), 10),
        ("</tu>", 9),
    ],
)
def test_damage_is_one_bad_record_and_the_rest_is_read(tmp_path, damaged, line):
    [error] = read_around(tmp_path, damaged)
    assert isinstance(error, InputError)
    assert error.path.endswith("memory.tmx")
    assert error.line == line if line else 9 <= error.line <= 11


def test_job_counts_damaged_units_in_a_long_file(tmp_path, monkeypatch):
    """More than is read at once, before and after the damage."""
    monkeypatch.setattr(textio, "_CHUNK_BYTES", 5_000)
    units = [unit_of(en=f"Number {number}", de=f"Nummer {number}") for number in range(300)]
    for bad in (200, 202):
        units[bad] = unit_of(en="bad & ugly", de="b")
    path = tmp_path / "memory.tmx.gz"
    units.append(unit_of(de="Hallo", fr="Salut"))
    path.write_bytes(gzip.compress((HEADER + "".join(units)).encode()))
    report = filter_bitext.run([str(path)], str(tmp_path / "out"), max_bad_records=3)
    # The end is missing too.
    assert (report["total"]["read"], report["total"]["dropped"]["bad_record"]) == (302, 3)
    assert report["total"]["dropped"]["other_language"] == 1
    assert [bad["line"] for bad in report["bad_records"]] == [203, 205, 304]


def test_a_unit_that_is_too_long_ends_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(textio, "_CHUNK_BYTES", 5_000)
    monkeypatch.setattr(textio, "MAX_LINE_BYTES", 50_000)
    text = HEADER + FIRST + unit("a" * 60_000, "b") + LAST + FOOTER
    first, error = records_and_errors(file_of(tmp_path, text))
    assert (first, error.line) == (GOOD[0], 6)


@pytest.mark.parametrize("size", [*range(64, 130, 3), 1000])
def test_chunks_end_anywhere(size):
    class Slow(io.BytesIO):
        def read(self, _=None):
            return super().read(size)

    odd = '<!-- <tu></tu> --><tu a="/>"/>' + unit("<![CDATA[</tu>]]>&eacute;", "日本")
    header = HEADER.replace("<header/>", "<header><!-- <tu> --></header>")
    text = header + FIRST + unit("a&b", "c") + odd + LAST + FOOTER
    file = CorpusFile("memory.tmx", None, "bitext", TMX)
    first, error, *rest = read_tmx(Slow(text.encode()), file)
    assert (first, error.line) == (GOOD[0], 7)
    assert rest == [Pair("", "", "und"), Pair("</tu>é", "日本", "de"), GOOD[2]]


def test_header_and_doctype(tmp_path):
    header = HEADER.replace("<tmx", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx').replace(
        "<header/>", "<header><note>&eacute;</note></header>"
    )
    text = header + unit("caf&eacute;", "&foo;") + unit("caf&eacute;", "x<ph/>y") + FOOTER
    error, pair = records_and_errors(file_of(tmp_path, text))
    assert (error.line, pair) == (6, Pair("café", "x y", "de"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *(
            (HEADER.replace("<tmx", f"<!DOCTYPE tmx [\n{one}]>\n<tmx") + FOOTER, ":3: .*'a'")
            for one in ('<!ENTITY a "<tu>x</tu>">', '<!ENTITY % a SYSTEM "file:///etc/hostname">')
        ),
        (HEADER + FIRST, ":6: the TMX file cannot be read .no element found"),
        (HEADER + "<tu></tuv>", ":3: .*mismatched tag"),
        (HEADER + FOOTER, "no units"),
        ("<html><body/></html>", ":1: .*not <tmx>"),
        ("", "cannot be read .no element"),
        *(
            (HEADER.replace("UTF-8", name) + FIRST + FOOTER, ":1: the encoding")
            for name in ("klingon", "rot13", "idna", "utf-7", "cp037", "é", "")
        ),
    ],
)
def test_files_that_are_refused(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        list(read_file(file_of(tmp_path, content)))


def test_damage_in_the_header_loses_nothing(tmp_path):
    for header in ("<header>\x01&</header>", "<header>", "<header x='>'>"):
        text = HEADER.replace("<header/>", header) + "text & more" + FIRST + "</group>" + FOOTER
        assert list(records_and_errors(file_of(tmp_path, text))) == [GOOD[0]]


def test_encodings_and_byte_orders(tmp_path):
    for names, text in (
        ("GB2312 GBK GB18030 Big5", "中文"),
        ("Shift_JIS EUC-JP ISO-2022-JP", "日本語テスト"),
        ("windows-1252 ISO-8859-1", "où est-ce ?"),
        ("TIS-620", "ภาษาไทย"),
    ):
        for name in names.split():
            content = HEADER.replace("UTF-8", name) + unit("a", text) + FOOTER
            file = file_of(tmp_path, content.encode(name))
            assert list(read_file(file)) == [Pair("a", text, "de")]

    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"):
        for declared in (' encoding="UTF-16"', ' encoding="utf-8"', ""):
            header = HEADER.replace(' encoding="UTF-8"', declared)
            content = (header + unit("a", "Мир 中文 😀") + FOOTER).encode(encoding)
            assert list(read_file(file_of(tmp_path, content))) == [Pair("a", "Мир 中文 😀", "de")]


def test_bytes_of_another_encoding(tmp_path):
    encodings = ("UTF-8", "latin-1"), ("Shift_JIS", "cp1252"), ("us-ascii", "latin-1")
    for declared, actual in encodings:
        units = FIRST + unit("a", "Caf\xe9\xff") + A_B
        content = (HEADER.replace("UTF-8", declared) + units + FOOTER).encode(actual)
        before, error, after = records_and_errors(file_of(tmp_path, content))
        assert (before, error.line, after) == (GOOD[0], 8, Pair("a", "b", "de"))
