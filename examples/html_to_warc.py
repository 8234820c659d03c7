"""Packs folders of HTML files into a WARC file, as a crawler would have, one site a folder.

    python examples/html_to_warc.py FOLDER ... --out pages.warc.gz

So the documentation that a distribution ships in many languages can train a quality model:

    apt-get download debian-handbook installation-guide-amd64 python3.11-doc
    for package in *.deb; do dpkg -x $package pages/${package%%_*}; done
    python examples/html_to_warc.py pages/* --out pages.warc.gz
    labse corpus train-quality pages.warc.gz --out quality-model
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

from fastwarc.warc import WarcRecord, WarcRecordType

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--out", required=True, metavar="FILE.warc.gz")
    args = parser.parse_args()
    for folder in args.folders:
        if not folder.is_dir():
            parser.error(f"{folder} is no folder of this machine")
    with gzip.open(args.out, "wb") as stream:
        for folder in args.folders:
            for path in sorted(folder.rglob("*.html")):
                if path.is_file():
                    address = f"http://{folder.name}/{path.relative_to(folder)}"
                    write_page(stream, address, path.read_bytes())


def write_page(stream, address: str, html: bytes) -> None:
    record = WarcRecord()
    record.init_headers(record_type=WarcRecordType.response)
    record.headers["WARC-Target-URI"] = address
    record.headers["Content-Type"] = "application/http; msgtype=response"
    record.set_bytes_content(HEAD + html)
    record.write(stream)


if __name__ == "__main__":
    main()
