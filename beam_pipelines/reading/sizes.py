"""Estimates the amount of text in a corpus file from its size on disk, without reading it."""

from __future__ import annotations

from beam_pipelines.reading.scores import ScoreFile
from beam_pipelines.runtime.storage import STORAGE
from labse_tf.files.corpus_files import PARQUET, ZIP, CorpusFile
from labse_tf.files.textio import COMPRESSIONS

# Text in many languages is compressed to a third or a quarter of its size.
_COMPRESSION_FACTOR = 4


def text_bytes(file: CorpusFile | ScoreFile) -> int:
    """Returns the approximate bytes of text in a file: four times its size if it is compressed."""
    compressed = file.format in (PARQUET, ZIP) or file.path.lower().endswith(COMPRESSIONS)
    factor = _COMPRESSION_FACTOR if compressed else 1
    return factor * sum(map(STORAGE.size, file.paths))
