"""Finds a job's input, on disk or in a store, and divides it for workers.

One large file is not the work of one worker: plain text is divided after a line feed. Compressed
files and other formats can only be read from the start. The parts in order have the records of the
file in order.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from beam_pipelines.runtime.storage import REPORT, STORAGE, join, open_file, scheme_of
from labse_tf.errors import InputError
from labse_tf.files import corpus_files
from labse_tf.files.corpus_files import ALL_FORMATS, CorpusFile, split_compression
from labse_tf.files.record_kinds import NEIGHBOURS
from labse_tf.files.textio import COMPRESSIONS

PART_BYTES = 64_000_000
_CHUNK_BYTES = 1 << 20
_DIVISIBLE = (corpus_files.TEXT, corpus_files.TSV, corpus_files.JSON_LINES)
_PACKED = (corpus_files.PARQUET, corpus_files.ZIP)
# Text in many languages is compressed to a third or a quarter of its size.
_COMPRESSION_FACTOR = 4


def find_files(
    inputs: Sequence[str], *, kind: str | None = None, formats: tuple[str, ...] = ALL_FORMATS
) -> list[CorpusFile]:
    """Same as `find_corpus_files`; raises InputError for shards of a job that has not ended."""
    files = corpus_files.find_corpus_files(inputs, kind=kind, formats=formats, storage=STORAGE)
    check_complete(file.path for file in files if file.format == corpus_files.SHARD)
    return files


def check_complete(paths: Iterable[str]) -> None:
    """Checks the jobs that wrote DIR/KIND/<lang>/FILE. On disk, DIR is there only when it is."""
    for folder in sorted({path.rsplit("/", 3)[0] for path in paths if scheme_of(path)}):
        if not STORAGE.exists(join(folder, REPORT)):
            problem = f"has no {REPORT}: the job that writes it has not ended, or failed"
            remedy = f"run it again; or, if you copied its output, copy {REPORT} too"
            raise InputError(problem, path=folder, remedy=remedy)


def text_bytes(file: CorpusFile) -> int:
    """Returns the approximate bytes of text in a file: four times its size if it is compressed."""
    compressed = file.format in _PACKED or file.path.lower().endswith(COMPRESSIONS)
    factor = _COMPRESSION_FACTOR if compressed else 1
    return factor * sum(map(STORAGE.size, file.paths))


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
        if file.format in _DIVISIBLE and file.kind != NEIGHBOURS:
            size = 0 if split_compression(file.path)[1] else STORAGE.size(file.path)
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
