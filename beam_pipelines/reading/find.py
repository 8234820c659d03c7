"""Finds a job's input on disk or in a store, and tells how much text it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from beam_pipelines.runtime.storage import REPORT, STORAGE, join, scheme_of
from labse_tf.errors import InputError
from labse_tf.files.corpus_files import (
    ALL_FORMATS,
    PARQUET,
    SHARD,
    ZIP,
    CorpusFile,
    find_corpus_files,
)
from labse_tf.files.textio import COMPRESSIONS

# Text in many languages is compressed to a third or a quarter of its size.
_COMPRESSION_FACTOR = 4


def find_files(
    inputs: Sequence[str], *, kind: str | None = None, formats: tuple[str, ...] = ALL_FORMATS
) -> list[CorpusFile]:
    """Same as `find_corpus_files`; raises InputError for shards of a job that has not ended."""
    files = find_corpus_files(inputs, kind=kind, formats=formats, storage=STORAGE)
    check_complete(file.path for file in files if file.format == SHARD)
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
    compressed = file.format in (PARQUET, ZIP) or file.path.lower().endswith(COMPRESSIONS)
    factor = _COMPRESSION_FACTOR if compressed else 1
    return factor * sum(map(STORAGE.size, file.paths))
