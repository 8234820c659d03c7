"""Files of lines, plain or compressed, and of rows."""

from __future__ import annotations

import gzip
import lzma


def write_lines(path, lines):
    text = "".join(f"{line}\n" for line in lines)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".xz":
        path.write_bytes(lzma.compress(text.encode()))
    else:
        path.write_text(text, "utf-8")
    return path


def read_rows(path):
    return [tuple(line.split("\t")) for line in path.read_text("utf-8").split("\n")[:-1]]


def content_of(folder):
    """{path below the folder: bytes} of all its files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
