"""Web pages: WARC and WET archives, made by FastWARC itself, whole and damaged."""

import gzip
import zlib

import pytest
import zstandard
from fastwarc.warc import WarcRecordType
from web_pages import archive, page, record

from beam_pipelines import filter_monolingual
from beam_pipelines.reading import web
from beam_pipelines.reading.readers import read_file, records_and_errors
from beam_pipelines.reading.web import main_and_other_lines, main_text
from beam_pipelines.records import Document
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import describe

INFO = WarcRecordType.warcinfo
OK = b"HTTP/1.1 200 OK\r\n"
HTML = OK + b"Content-Type: text/html; charset=UTF-8\r\n\r\n"

PARAGRAPHS = {
    "en": "The river rises in the mountains, and it flows through two lakes into the sea.",
    "ru": "Река берёт начало в горах и течёт через два озера в море, где её устье.",
    "ja": "この川は山から流れ出て、二つの湖を通って海に注いでいます。",
    "ar": "ينبع النهر من الجبال ويجري عبر بحيرتين حتى يصل إلى البحر الكبير.",
    "hi": "यह नदी पहाड़ों से निकलती है और दो झीलों से होकर समुद्र में गिरती है।",
}


def wet(text, address="http://a.example/1"):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    return record(data, address=address, kind=WarcRecordType.conversion)


def corpus_file(tmp_path, name, *records):
    """Writes an archive; a compressed one as CommonCrawl does, each record a gzip member."""
    path = tmp_path / name
    compress = gzip.compress if name.endswith(".gz") else bytes
    path.write_bytes(b"".join(map(compress, records)))
    return describe(str(path))


@pytest.mark.parametrize("name", ["x.warc.wet.gz", "x.wet", "x.wet.gz"])
def test_wet(tmp_path, name):
    info = record(b"isPartOf: CC-MAIN", kind=INFO)
    file = corpus_file(tmp_path, name, info, *map(wet, PARAGRAPHS.values()))
    assert list(read_file(file)) == [Document(text, "und") for text in PARAGRAPHS.values()]


@pytest.mark.parametrize("name", ["x.warc", "x.warc.gz"])
def test_warc(tmp_path, name):
    paragraphs = [[f"{text} {number}." for number in range(9)] for text in PARAGRAPHS.values()]
    en, ru, ja, *others = map(page, paragraphs)
    # The page, not the server, tells its encoding here.
    ru = ru.replace("<head>", '<head><meta charset="koi8-r">')
    packed = OK + b"Content-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    file = corpus_file(
        tmp_path,
        name,
        record(b"GET / HTTP/1.1\r\n\r\n", kind=WarcRecordType.request),
        record(OK + b"Content-Type: image/png\r\n\r\n\x89PNG"),
        record(HTML + en.encode()),
        record(OK + b"Content-Type: text/html\r\n\r\n" + ru.encode("koi8-r")),
        record(packed + gzip.compress(ja.encode())),
        *(record(HTML + other.encode()) for other in others),
    )
    assert [document.text.split("\n") for document in read_file(file)] == paragraphs


LINES = [f"{PARAGRAPHS['en']} It happens in part {number}." for number in range(6)]
BODY = page(LINES).encode()


def test_main_and_other_text():
    assert main_text(BODY).split("\n") == LINES
    main, other = main_and_other_lines(BODY)
    assert main == LINES and "Copyright 2020" in other
    assert main_and_other_lines(b"") == ([], [])


ONE, TWO = wet(PARAGRAPHS["en"]), wet(PARAGRAPHS["ru"])
PACKED = gzip.compress(ONE), gzip.compress(TWO)
DAMAGED = {
    "gzip cut off": ("x.wet.gz", PACKED[0] + PACKED[1][:-20]),
    "gzip checksum": ("x.wet.gz", PACKED[0] + PACKED[1][:-8] + b"\0" * 8),
    "text cut off": ("x.wet", ONE + TWO[:-20]),
    "header cut off": ("x.wet", ONE + TWO[:70]),
    "not a header": ("x.wet", ONE + b"trash\r\n" + TWO),
    "HTML cut off": ("x.warc", record(HTML + page([PARAGRAPHS["en"]]).encode())[:-30]),
}


@pytest.mark.parametrize(("name", "data"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_an_error_after_the_whole_pages(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    *pages, error = records_and_errors(describe(str(path)))
    assert isinstance(error, InputError)
    assert "file is damaged or truncated" in error.problem
    assert error.path == str(path)
    # Python's gzip may notice the damage before it gives the first page out.
    assert pages in ([], [Document(PARAGRAPHS["en"], "und")])
    [error] = records_and_errors(corpus_file(tmp_path, name, record(b"a: b", kind=INFO)))
    assert "has no pages" in error.problem


def test_bad_pages_are_errors_in_their_place(tmp_path, monkeypatch):
    monkeypatch.setattr(web, "MAX_PAGE_BYTES", 20)
    pages = (b"Gr\xfc\xdfe", "http://a/latin1"), ("good",), ("a\0b", "http://a/nul"), ("x" * 21,)
    file = corpus_file(tmp_path, "x.wet.gz", *(wet(*one) for one in pages))
    first, good, nul, large = records_and_errors(file)
    assert first.problem == "invalid UTF-8 at byte 2 of the page http://a/latin1"
    assert good == Document("good", "und")
    assert nul.problem == "the page http://a/nul holds a NUL byte"
    assert large.problem == "the page http://a.example/1 has more than 20 bytes"


def test_what_unpacks_to_a_large_page_is_not_held(tmp_path):
    bomb = gzip.compress(b"<p>" + b"a" * (web.MAX_PAGE_BYTES + 1))
    headers = OK + b"Content-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    file = corpus_file(tmp_path, "x.warc", record(headers + bomb))
    [error] = records_and_errors(file)
    assert "has more than 5,242,880 bytes" in error.problem


READ = Document("\n".join(LINES), "und")
PACKED = gzip.compress(BODY)
CHUNK = b"%x\r\n" % len(BODY) + BODY
BAD = {
    "gzip flipped": ("gzip", "", PACKED[:30] + b"\xff\xff\xff" + PACKED[33:]),
    "gzip checksum": ("gzip", "", PACKED[:-8] + bytes(8)),
    "no gzip": ("gzip", "", BODY),
    "deflate": ("deflate", "", b"\xff" + zlib.compress(BODY)),
    "br": ("br", "", b"\x93\x22" + BODY),
    "br, empty": ("br", "", b""),
    "zstd cut off": ("zstd", "", zstandard.compress(BODY)[:-9]),
    "unknown": ("rot13", "", BODY),
    "twice": ("gzip, br", "", PACKED),
    "no chunk": ("", "chunked", BODY),
    "negative chunk": ("", "chunked", b"-5\r\n" + BODY),
    "huge chunk": ("", "chunked", b"ffffffffffffffff\r\n" + BODY),
    "chunk cut off": ("", "chunked", CHUNK[:-20]),
    "chunk of no gzip": ("gzip", "chunked", CHUNK + b"\r\n0\r\n\r\n"),
}


@pytest.mark.parametrize(("encoding", "transfer", "content"), BAD.values(), ids=BAD)
def test_a_page_that_cannot_be_decompressed_is_one_bad_record(
    tmp_path, encoding, transfer, content
):
    headers = {"Content-Type": "text/html"}
    headers |= {"Content-Encoding": encoding} if encoding else {}
    headers |= {"Transfer-Encoding": transfer} if transfer else {}
    image = headers | {"Content-Type": "image/png"}
    pages = [(BODY, {"Content-Type": "text/html"}), (content, headers), (content, image)]
    pages += pages[:1]
    file = archive(tmp_path, *(part for both in pages for part in both))
    first, error, last = records_and_errors(file)
    assert first == last == READ
    assert isinstance(error, InputError) and error.path == file.path
    assert len(str(error)) < 400


def test_damaged_http_headers_do_not_end_the_archive(tmp_path):
    heads = (b"", b"\xff\xfe\0 trash\r\nfoo", OK[:-2], b"HTTP/1.1 200\r\n: x")
    damaged = (record(head + b"\r\n\r\n" + BODY) for head in heads)
    file = corpus_file(tmp_path, "x.warc", *damaged, record(HTML + BODY))
    assert list(read_file(file)) == [READ]


def test_job_counts_bad_pages_and_identifies_languages(tmp_path):
    texts = [wet(f"{text} {text}") for text in PARAGRAPHS.values()]
    file = corpus_file(tmp_path, "x.wet.gz", *texts, wet(b"\xff"))
    report = filter_monolingual.run([file.path], str(tmp_path / "out"), c4=False, max_bad_records=1)
    assert report["languages"]["und"]["dropped"]["bad_record"] == 1
    # Both sentences of a page are the same.
    for language in PARAGRAPHS:
        row = report["languages"][language]
        assert (row["read"], row["kept"], row["dropped"]["duplicate"]) == (2, 1, 1), language
    with pytest.raises(InputError, match="invalid UTF-8"):
        filter_monolingual.run([file.path], str(tmp_path / "none"), c4=False)
