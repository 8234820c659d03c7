"""Divides large files, so that one file is not the work of one worker.

Plain text is divided after a line feed, TFRecord files between records. Compressed files and other
formats can only be read from the start. The parts in order have the records of the file in order.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from beam_pipelines.records.tfrecords import HEADER_BYTES, are_headers
from beam_pipelines.runtime.storage import STORAGE, open_file
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import (
    JSON_LINES,
    TEXT,
    TFRECORD,
    TSV,
    CorpusFile,
    split_compression,
)
from labse_tf.files.record_kinds import NEIGHBOURS
from labse_tf.files.textio import has_old_line_ends

PART_BYTES = 64_000_000
_CHUNK_BYTES = 1 << 20
_SEARCH_BYTES = 1 << 16


class FilePart(NamedTuple):
    """A part of a corpus file.

    Attributes:
      file: the file.
      start: its records are those that begin at this byte or after it,
      end: and before this one. None: the whole file.
    """

    file: CorpusFile
    start: int = 0
    end: int | None = None


def divide(files: Iterable[CorpusFile], part_bytes: int | None = None) -> list[FilePart]:
    """Returns the files in their order, large ones in parts of about `part_bytes` bytes.

    None stands for PART_BYTES.
    """
    part_bytes = part_bytes or PART_BYTES
    parts = []
    for file in files:
        size = STORAGE.size(file.path) if _can_be_divided(file) else 0
        if size <= part_bytes or _has_old_line_ends(file):
            parts.append(FilePart(file))
            continue
        starts = range(0, size, part_bytes)
        ends = [*starts[1:], size]
        parts += [FilePart(file, *both) for both in zip(starts, ends, strict=True)]
    return parts


def _can_be_divided(file: CorpusFile) -> bool:
    if split_compression(file.path)[1] or file.kind == NEIGHBOURS:
        return False
    return file.format in (TEXT, TSV, JSON_LINES, TFRECORD)


def _has_old_line_ends(file: CorpusFile) -> bool:
    with open_file(file.path) as stream:
        return file.format != TFRECORD and has_old_line_ends(stream.read(_CHUNK_BYTES))


@contextlib.contextmanager
def open_part(part: FilePart) -> Iterator[BinaryIO | None]:
    """Yields a stream of a part's whole lines or records; None if nothing begins in it."""
    with open_file(part.file.path) as stream:
        if part.end is None:
            yield stream
            return
        find = _next_record if part.file.format == TFRECORD else _next_line
        start, end = find(stream, part.start), find(stream, part.end)
        stream.seek(start)
        yield _Limited(stream, end - start) if end > start else None


def placed(part: FilePart, error: InputError) -> InputError:
    """Returns an error of a part, whose lines are counted from the part's first, for the file."""
    if not part.start:
        return error
    if error.line is None:
        problem = f"{error.problem}, counted from byte {part.start}"
        return InputError(problem, remedy=error.remedy, path=error.path)
    with open_file(part.file.path) as stream:
        left, before = _next_line(stream, part.start), 0
        stream.seek(0)
        while left and (chunk := stream.read(min(left, _CHUNK_BYTES))):
            before += chunk.count(b"\n")
            left -= len(chunk)
    return InputError(error.problem, remedy=error.remedy, path=error.path, line=error.line + before)


def _next_line(stream: BinaryIO, position: int) -> int:
    """Returns where the first line begins that begins at `position` or after it."""
    if position == 0:
        return 0
    stream.seek(position - 1)
    while (piece := stream.readline(_CHUNK_BYTES)) and not piece.endswith(b"\n"):
        pass
    return stream.tell()


def _next_record(stream: BinaryIO, position: int) -> int:
    """Returns where the first record begins that begins at `position` or after it.

    A record begins with its length and the checksum of that. Of 64 KiB of other data, one in
    65,000 has such 12 bytes by chance; then what they announce is not a record's end.
    """
    if position == 0:
        return 0
    held = b""
    while True:
        stream.seek(position + len(held))
        if not (chunk := stream.read(_SEARCH_BYTES)):
            return position + len(held)
        held += chunk
        for place in np.flatnonzero(are_headers(held)):
            if _has_successor(stream, position + int(place)):
                return position + int(place)
        kept = min(len(held), HEADER_BYTES - 1)
        position += len(held) - kept
        held = held[len(held) - kept :]


def _has_successor(stream: BinaryIO, place: int) -> bool:
    stream.seek(place)
    length = int.from_bytes(stream.read(8), "little")
    stream.seek(place + HEADER_BYTES + length)
    rest = stream.read(4 + HEADER_BYTES)
    return len(rest) == 4 or (len(rest) == 4 + HEADER_BYTES and bool(are_headers(rest[4:])[0]))


class _Limited(io.RawIOBase):
    """The next `size` bytes of a stream, which its owner closes."""

    is_part = True  # Its own line ends do not tell those of the file.

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._left = size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data
