"""How much text a corpus file holds, told by its size on disk before anything is read."""

from __future__ import annotations

import os

from beam_pipelines.reading.scores import ScoreFile
from labse_tf.files.corpus_files import PARQUET, CorpusFile
from labse_tf.files.textio import COMPRESSIONS

# Text of many languages shrinks to a third or a quarter of its size.
_COMPRESSION_FACTOR = 4


def text_bytes(file: CorpusFile | ScoreFile) -> int:
    """Returns about how many bytes of text a file holds; compressed ones, four times their size."""
    compressed = file.format == PARQUET or file.path.endswith(COMPRESSIONS)
    factor = _COMPRESSION_FACTOR if compressed else 1
    return factor * sum(map(os.path.getsize, file.paths))
