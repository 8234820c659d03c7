"""Divides large files, so that one file is not the work of one worker.

Plain text is divided after a line feed. Compressed files and other formats can only be read from
the start. The parts in order have the records of the file in order.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from beam_pipelines.runtime.storage import STORAGE, open_file
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import JSON_LINES, TEXT, TSV, CorpusFile, split_compression
from labse_tf.files.record_kinds import NEIGHBOURS
from labse_tf.files.textio import has_old_line_ends

PART_BYTES = 64_000_000
_CHUNK_BYTES = 1 << 20


class FilePart(NamedTuple):
    """The lines of a corpus file that begin from byte `start` and before `end`; None: all."""

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
        size = 0
        if file.format in (TEXT, TSV, JSON_LINES) and file.kind != NEIGHBOURS:
            size = 0 if split_compression(file.path)[1] else STORAGE.size(file.path)
        if size > part_bytes:
            with open_file(file.path) as stream:
                size = 0 if has_old_line_ends(stream.read(_CHUNK_BYTES)) else size
        if size <= part_bytes:
            parts.append(FilePart(file))
        else:
            starts = range(0, size, part_bytes)
            parts += [FilePart(file, start, min(start + part_bytes, size)) for start in starts]
    return parts


@contextlib.contextmanager
def open_part(part: FilePart) -> Iterator[BinaryIO | None]:
    """Yields a stream of a part's whole lines; None if none begins in it."""
    with open_file(part.file.path) as stream:
        if part.end is None:
            yield stream
            return
        start, end = _next_line(stream, part.start), _next_line(stream, part.end)
        stream.seek(start)
        yield _Part(stream.read(end - start)) if end > start else None


def placed(part: FilePart, error: InputError) -> InputError:
    """Returns an error of a part, whose lines are counted from the part's first, for the file."""
    if not part.start or error.line is None:
        return error
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


class _Part(io.BytesIO):
    is_part = True  # Its own line ends do not tell those of the file.
