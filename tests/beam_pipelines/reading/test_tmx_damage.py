"""TMX files in part damaged, in all encodings, and with what looks like a unit and is none."""

import gzip
import io

import pytest

from beam_pipelines import filter_bitext
from beam_pipelines.reading.readers import read_file, records_and_errors
from beam_pipelines.reading.tmx import read_tmx
from beam_pipelines.records.records import Pair
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import TMX, CorpusFile, find_corpus_files

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


def file_of(tmp_path, content):
    path = tmp_path / "memory.tmx"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    [file] = find_corpus_files([str(path)])
    return file


def read_around(tmp_path, middle):
    """Returns the records and errors between the good units, which must all be read."""
    records = list(
        records_and_errors(file_of(tmp_path, HEADER + FIRST + SECOND + middle + LAST + FOOTER))
    )
    assert [record for record in records if record in GOOD] == GOOD
    return [record for record in records if record not in GOOD]


@pytest.mark.parametrize(
    ("damaged", "line"),
    [
        (unit("a\x01", "b"), 10),
        (unit("a", "b\x1f"), 11),
        (unit("a", "&#x1;"), 11),
        (unit("&#xD800;", "b"), 10),
        (unit("a", "\ufffe"), 11),
        (unit("AT&T and Co", "b"), 10),
        (unit("R & B", "b").replace("\n", "\r\n"), 10),
        (unit("a < b", "b"), 10),
        (unit("<b>a", "b"), 10),
        (unit("caf&eacut;", "b"), 10),
        (unit("a <!-- no end", "b"), None),
        (unit("a <![CDATA[no end", "b"), None),
        (unit("a <? no end", "b"), None),
        (unit("a", "b", attributes=' tuid="1" tuid="2"'), 9),
        (unit("a", "b", attributes=' tuid="1'), None),
        (unit("a", "b").replace("</tu>", ""), 11),
        (unit("a", "b").replace("</tu>", "</tu\x02>"), 11),
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


def test_job_counts_damaged_units_in_a_long_file(tmp_path):
    """More than is read at once, before and after the damage."""
    units = [unit(f"Number {number}", f"Nummer {number}") for number in range(12_000)]
    for bad in (11_000, 11_002):
        units[bad] = unit("bad & ugly", "b")
    path = tmp_path / "memory.tmx"
    path.write_text(HEADER + "".join(units) + FOOTER, encoding="utf-8")
    report = filter_bitext.run([str(path)], str(tmp_path / "out"), max_bad_records=2)
    assert report["total"]["read"] == 12_000
    assert report["total"]["dropped"]["bad_record"] == 2
    assert [bad["line"] for bad in report["bad_records"]] == [
        3 + 3 * 11_000 + 1,
        3 + 3 * 11_002 + 1,
    ]


def test_a_unit_that_is_too_long_is_one_bad_record(tmp_path):
    path = tmp_path / "memory.tmx.gz"
    long = unit("a" * 11_000_000 + "\n\n", "b")
    path.write_bytes(gzip.compress((HEADER + FIRST + long + LAST + "</tu>" + FOOTER).encode(), 1))
    [file] = find_corpus_files([str(path)])
    first, error, last, other = records_and_errors(file)
    assert [first, last] == [GOOD[0], GOOD[2]]
    # The second error is after the line feeds of the first.
    assert (error.line, other.line) == (6, 14)


@pytest.mark.parametrize("size", [*range(64, 130), 1000])
def test_chunks_end_anywhere(size):
    class Slow(io.BytesIO):
        def read(self, _=None):
            return super().read(size)

    text = (
        HEADER.replace("<header/>", "<header><!-- <body> <tu> --></header>")
        + FIRST
        + unit("a&b", "c")
        + '<!-- <tu></tu> --><tu a="/>"/>'
        + unit("<![CDATA[</tu>]]>&eacute;", "日本")
        + LAST
        + FOOTER
    )
    file = CorpusFile("memory.tmx", None, "bitext", TMX)
    first, error, *rest = read_tmx(Slow(text.encode()), file)
    assert first == GOOD[0]
    assert error.line == 7
    assert rest == [Pair("", "", "und"), Pair("</tu>é", "日本", "de"), GOOD[2]]


@pytest.mark.parametrize(
    "nothing",
    [
        "<!-- " + FIRST + " -->\n",
        "<!-- <tu> -->\n<!-- </tu> -->",
        "<?tool " + FIRST + " ?>",
        "<group>\n</group>",
        '<x:tu xmlns:x="urn:x">text</x:tu>',
    ],
)
def test_what_is_no_unit(tmp_path, nothing):
    assert read_around(tmp_path, nothing) == []


@pytest.mark.parametrize(
    ("content", "pair"),
    [
        (unit("a", "b", attributes=' tuid="1>2" note=\'"/>\''), Pair("a", "b", "de")),
        (unit("a<!-- </tu> <tu> -->b", "c"), Pair("ab", "c", "de")),
        (unit("a", "b").replace("</tu>", "</tu\n>"), Pair("a", "b", "de")),
        ("<group>" + unit("a", "b") + "</group>", Pair("a", "b", "de")),
        (unit("a", "b").replace('xml:lang="de"', 'lang="fr"'), Pair("a", "b", "fr")),
        (unit("a", "b").replace('xml:lang="de"', 'lang="fr" xml:lang="it"'), Pair("a", "b", "it")),
        (unit("<![CDATA[<b> &eacute;]]>", "b"), Pair("<b> &eacute;", "b", "de")),
        (unit("caf&eacute;&nbsp;&Omega;", "&hellip;&lt;"), Pair("café Ω", "…<", "de")),
        ("<tu/>", Pair("", "", "und")),
    ],
)
def test_units(tmp_path, content, pair):
    assert read_around(tmp_path, content) == [pair]


def test_prefixes_header_and_doctype(tmp_path):
    header = HEADER.replace("<tmx", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx').replace(
        "<header/>", f"<header><note>{FIRST}&eacute;</note></header>"
    )
    text = header + unit("caf&eacute;", "&foo;") + unit("caf&eacute;", "x<ph/>y") + FOOTER
    for name in ("tmx", "header", "body", "tu", "tuv", "seg", "ph"):
        for slash in ("", "/"):
            for end in (" ", ">", "/"):
                text = text.replace(f"<{slash}{name}{end}", f"<{slash}p:{name}{end}")
    error, pair = records_and_errors(file_of(tmp_path, text))
    assert (error.line, pair) == (9, Pair("café", "x y", "de"))


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "<tu>x</tu>">',
        '<!ENTITY % a SYSTEM "file:///etc/hostname">',
        '<!ENTITY a SYSTEM "file:///etc/hostname">',
    ],
)
def test_entities_are_not_defined(tmp_path, declaration):
    text = HEADER.replace("<tmx", f"<!DOCTYPE tmx [\n{declaration}]>\n<tmx") + FIRST + FOOTER
    with pytest.raises(InputError, match=":3: defines the entity 'a'"):
        list(read_file(file_of(tmp_path, text)))


@pytest.mark.parametrize("header", ["<header>\x01&</header>", "<header>", "<header x='>'>"])
def test_damage_in_the_header_loses_nothing(tmp_path, header):
    text = HEADER.replace("<header/>", header) + "text & more" + FIRST + "</group>" + FOOTER
    assert list(records_and_errors(file_of(tmp_path, text))) == [GOOD[0]]


@pytest.mark.parametrize(
    ("encodings", "text"),
    [
        (("GB2312", "GBK", "GB18030", "Big5", "hz"), "中文"),
        (("Shift_JIS", "EUC-JP", "ISO-2022-JP", "utf-7"), "日本語テスト"),
        (("EUC-KR", "ks_c_5601-1987"), "한국말"),
        (("KOI8-R", "windows-1251", "ISO-8859-5"), "Привет, мир"),
        (("windows-1252", "ISO-8859-1"), "où est-ce ?"),
        (("windows-874", "TIS-620"), "ภาษาไทย"),
        (("windows-1256",), "مرحبا"),
    ],
)
def test_declared_encodings(tmp_path, encodings, text):
    for name in encodings:
        content = HEADER.replace("UTF-8", name) + unit("a", text) + FOOTER
        file = file_of(tmp_path, content.encode(name.replace("windows-874", "cp874")))
        assert list(read_file(file)) == [Pair("a", text, "de")]


@pytest.mark.parametrize("declared", [' encoding="UTF-16"', ' encoding="utf-8"', ""])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_byte_order(tmp_path, encoding, declared):
    content = HEADER.replace(' encoding="UTF-8"', declared) + unit("a", "Мир 中文 😀") + FOOTER
    file = file_of(tmp_path, content.encode(encoding))
    assert list(read_file(file)) == [Pair("a", "Мир 中文 😀", "de")]


@pytest.mark.parametrize(
    "name", ["klingon", "rot13", "base64", "idna", "unicode_escape", "undefined", "cp037", "é", ""]
)
def test_unknown_encodings(tmp_path, name):
    content = HEADER.replace("UTF-8", name) + FIRST + FOOTER
    with pytest.raises(InputError, match=r"memory\.tmx:1: the encoding"):
        list(read_file(file_of(tmp_path, content)))


@pytest.mark.parametrize(
    ("declared", "actual"), [("UTF-8", "latin-1"), ("Shift_JIS", "cp1252"), ("us-ascii", "utf-8")]
)
def test_bytes_of_another_encoding(tmp_path, declared, actual):
    content = HEADER.replace("UTF-8", declared) + "{}" + unit("a", "Caf\xe9\xff") + "{}" + FOOTER
    first, last = (unit(*texts) for texts in (TEXTS[0], ("a", "b")))
    file = file_of(tmp_path, content.format(first, last).encode(actual))
    before, error, after = records_and_errors(file)
    assert (before, error.line, after) == (GOOD[0], 8, Pair("a", "b", "de"))
