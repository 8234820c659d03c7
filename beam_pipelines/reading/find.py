"""Finds a job's input, on disk or in a store, and estimates how much text it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from beam_pipelines.reading.scores import ScoreFile, find_score_files
from beam_pipelines.runtime.outputs import REPORT
from beam_pipelines.runtime.storage import STORAGE, join, scheme_of
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


def find_files(
    inputs: Sequence[str], *, kind: str | None = None, formats: tuple[str, ...] = ALL_FORMATS
) -> list[CorpusFile]:
    """Returns the corpus files in `inputs`; see `find_corpus_files`.

    Raises:
      InputError: as there, or for shards in a store that are not complete.
    """
    files = find_corpus_files(inputs, kind=kind, formats=formats, storage=STORAGE)
    _check_complete(file.path for file in files if file.format == SHARD)
    return files


def find_scores(inputs: Sequence[str]) -> list[ScoreFile]:
    """Returns the score files in `inputs`; raises InputError as `find_files`."""
    files = find_score_files(inputs, STORAGE)
    _check_complete(file.path for file in files)
    return files


def _check_complete(paths: Iterable[str]) -> None:
    """Checks the jobs that wrote DIR/KIND/<lang>/FILE. On disk, DIR is there only when it is."""
    for folder in sorted({path.rsplit("/", 3)[0] for path in paths if scheme_of(path)}):
        if not STORAGE.exists(join(folder, REPORT)):
            raise InputError(
                f"has no {REPORT}: the job that writes it has not ended, or failed",
                path=folder,
                remedy=f"run it again; or, if you copied its output, copy {REPORT} too",
            )


# Text in many languages is compressed to a third or a quarter of its size.
_COMPRESSION_FACTOR = 4


def text_bytes(file: CorpusFile | ScoreFile) -> int:
    """Returns the approximate bytes of text in a file: four times its size if it is compressed."""
    compressed = file.format in (PARQUET, ZIP) or file.path.lower().endswith(COMPRESSIONS)
    factor = _COMPRESSION_FACTOR if compressed else 1
    return factor * sum(map(STORAGE.size, file.paths))
