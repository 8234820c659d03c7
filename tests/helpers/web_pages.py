"""Web pages, and archives of them, made by FastWARC itself."""

from __future__ import annotations

import io

from fastwarc.warc import WarcRecord, WarcRecordType

from labse_tf.files.corpus_files import find_corpus_files


def page(paragraphs, menu="Home | Imprint | Log in"):
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        f"<html><head><title>River</title></head><body><nav><ul><li>{menu}</li></ul></nav>"
        f"<main><article>{body}</article></main><footer>Copyright 2020</footer></body></html>"
    )


def record(content, *, address="http://a.example/1", kind=WarcRecordType.response):
    made = WarcRecord()
    made.init_headers(record_type=kind)
    made.headers["WARC-Target-URI"] = address
    if kind == WarcRecordType.response:
        made.headers["Content-Type"] = "application/http; msgtype=response"
    made.set_bytes_content(content)
    stream = io.BytesIO()
    made.write(stream)
    return stream.getvalue()


def archive(tmp_path, *pages):
    """Writes a WARC file of `content, headers, content, headers, ...`."""
    made = b""
    for content, headers in zip(pages[::2], pages[1::2], strict=True):
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        made += record(b"HTTP/1.1 200 OK\r\n" + lines.encode() + b"\r\n" + content)
    path = tmp_path / "pages.warc"
    path.write_bytes(made)
    [file] = find_corpus_files([str(path)], formats=("warc",))
    return file
