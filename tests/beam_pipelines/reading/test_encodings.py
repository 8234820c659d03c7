"""The encoding of a web page: byte order mark, HTTP header, what the page declares, a guess."""

import codecs

import pytest
from web_pages import archive, page

from beam_pipelines.reading.readers import read_file
from beam_pipelines.reading.web import decode_html, main_and_other_lines, main_text

# The name that a server or a page gives the encoding, Python's name of it, and text.
RU = "Река берёт начало в горах и течёт через два озера в море, где её устье."
TEXTS = {
    "koi8-r": ("koi8-r", RU),
    "shift_jis": ("shift_jis", "この川は山から流れ出て、二つの湖を通って海に注いでいます。"),
    "iso-2022-jp": ("iso2022_jp", "この川は山から流れ出て、二つの湖を通って海に注いでいます。"),
    "gb2312": ("gb18030", "这条河发源于山区，流经两个湖泊，最后注入大海。朱镕基"),
    "euc-kr": ("cp949", "이 강은 산에서 발원하여 두 개의 호수를 지나 바다로 흘러든다. 똠방각하"),
    "windows-874": ("cp874", "แม่น้ำสายนี้เกิดจากภูเขาและไหลผ่านทะเลสาบสองแห่งลงสู่ทะเล"),
    "iso-8859-7": ("iso8859-7", "Το ποτάμι πηγάζει στα βουνά και διασχίζει δύο λίμνες."),
    "iso-8859-1": ("cp1252", "Le fleuve naît à l’ouest, traverse deux lacs – puis la mer : 5 €."),
    "utf-16": ("utf-16", RU),
}
# So much text that the menu above it is not taken for content.
LINES = [f"{RU} {number}." for number in range(9)]


def declaring(text, label):
    return page([text]).replace("<head>", f'<head><meta charset="{label}">')


@pytest.mark.parametrize(("label", "codec", "text"), [(k, *v) for k, v in TEXTS.items()])
def test_the_header_or_the_page_names_it_and_the_header_wins(label, codec, text):
    assert decode_html(page([text]).encode(codec), label) == page([text])
    for declared, server in ((label, None), ("windows-1253", label)):
        html = declaring(text, declared)
        assert decode_html(html.encode(codec), server) == html


def test_a_byte_order_mark_wins_over_both():
    html = declaring(RU, "windows-1251")
    for bom in ("utf-8-sig", "utf-16-le", "utf-16-be"):
        mark = "" if bom == "utf-8-sig" else "\ufeff"
        for charset in (None, "koi8-r"):
            assert decode_html((mark + html).encode(bom), charset) == html


def test_ways_to_declare_it():
    for declaration in (
        '<meta charset="KOI8-R">',
        "<meta\nname-of='x' charset = ' koi8-r '>",
        "<meta content='text/html;charset=\"KOI8-R\";' http-equiv=content-type>",
        '<meta charset="no-such-thing"><meta charset="koi8-r">',
        '<!-- <meta charset="windows-1251"> --><meta charset="koi8-r">',
        '<meta name="keywords" content="charset=windows-1251"><meta charset="koi8-r">',
    ):
        html = page([RU]).replace("<head>", f"<head>{declaration}")
        for charset in (None, "", "no-such-thing", "iso-2022-kr"):
            assert decode_html(html.encode("koi8-r"), charset) == html
    # XHTML; a meta element wins.
    html = '<?xml version="1.0" encoding="koi8-r"?>\n' + page(LINES)
    assert decode_html(html.encode("koi8-r")) == html
    assert main_text(html.encode("koi8-r")).split("\n") == LINES
    html = html.replace("<head>", "<head><meta charset=windows-1251>")
    assert decode_html(html.encode("cp1251")) == html


def test_utf_8_that_cannot_be_what_is_declared():
    for label in (None, "utf-8", "iso-8859-1", "euc-jp", "big5"):
        # windows-1252 lacks a byte of these letters.
        html = declaring("Река и Ёлка, И так далее. Ŕ́", label or "utf-8")
        assert decode_html(html.encode("utf-8"), label) == html
    # The declaration counts if the bytes are valid in both encodings.
    assert decode_html("Ã¼".encode("cp1252"), "iso-8859-1") == "Ã¼"
    assert decode_html("Ã¼".encode("cp1252")) == "ü"


def test_a_damaged_page_keeps_its_encoding():
    html = page([RU])
    assert decode_html(html.encode("utf-8")[:-1] + b"\xff", "utf-8") == html[:-1] + "\ufffd"
    cut = (codecs.BOM_UTF16_LE + html.encode("utf-16-le"))[:-1]
    assert decode_html(cut) == html[:-1] + "\ufffd"
    # Nothing names it.
    assert decode_html(page([RU] * 5).encode("cp1251")) == page([RU] * 5)


def test_the_header_of_an_archive(tmp_path):
    html = page(LINES).encode("koi8-r")
    for kind in ('Text/HTML;Charset="KOI8-R"; x=y', "application/xhtml+xml; charset= 'koi8-r';"):
        file = archive(tmp_path, html, {"Content-Type": kind})
        assert [document.text.split("\n") for document in read_file(file)] == [LINES]
    assert main_and_other_lines(html, "koi8-r")[0] == LINES
