"""Embeds texts into a `.npy` chunk by chunk, and goes on where it was stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labse_tf.evaluation.encoder import Encoder
from labse_tf.progress import Progress

_TEXTS_A_CHUNK = 4096
_UNFINISHED = ".unfinished"


def embed_texts(
    texts: Sequence[str], encoder: Encoder, path: Path, *, description: str = "embed"
) -> None:
    """Writes float32 `[len(texts), dim]` to `path`, unless it is there.

    Until it is whole it is called `path.unfinished`; rows in it are not embedded again.

    Args:
      texts: one or more; the same as when it was stopped.
      encoder: as then.
      path: ends in .npy.
      description: for the progress.
    """
    if path.exists():
        return
    unfinished = path.with_name(path.name + _UNFINISHED)
    done = _cut_to_whole_rows(unfinished)
    with (
        open(unfinished, "ab") as file,
        Progress(description, total=len(texts), unit="sentence", initial=done) as progress,
    ):
        while done < len(texts):
            chunk = np.asarray(encoder.encode(texts[done : done + _TEXTS_A_CHUNK]), "<f4")
            if not done:
                header = {
                    "descr": "<f4",
                    "fortran_order": False,
                    "shape": (len(texts), chunk.shape[1]),
                }
                np.lib.format.write_array_header_1_0(file, header)
            file.write(np.ascontiguousarray(chunk).data)
            file.flush()
            done += len(chunk)
            progress.update(len(chunk))
    os.replace(unfinished, path)


def _cut_to_whole_rows(path: Path) -> int:
    """Drops a row of which only a part was written; returns how many there are."""
    if not path.exists():
        return 0
    with open(path, "r+b") as file:
        try:
            np.lib.format.read_magic(file)
            (_, dim), _, _ = np.lib.format.read_array_header_1_0(file)
        except ValueError:
            file.truncate(0)
            return 0
        start = file.tell()
        rows = (path.stat().st_size - start) // (4 * dim)
        file.truncate(start + rows * 4 * dim if rows else 0)
    return rows
