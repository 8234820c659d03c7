"""Embeds lines of text into a `.npy` file chunk by chunk; resumes after an interruption."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.embedding.quantisation import (
    QUANTISED,
    Calibration,
    read_calibration,
    write_calibration,
)
from labse_tf.errors import InputError
from labse_tf.files.outputs import whole_file
from labse_tf.progress import Progress

DTYPES = ("float32", "float16", *QUANTISED)
# A killed job loses at most this many lines. Quantised vectors are calibrated on the first chunk.
_LINES_PER_CHUNK = 8192
_UNFINISHED, _STATE = ".unfinished", ".json"


@dataclasses.dataclass
class Embedded:
    """The finished part of a job.

    Attributes:
      rows: number of rows written, one per line.
      digest: hash of these lines, to recognise them on resuming.
      lines_cut: number of lines truncated by the encoder; None if it does not count them.
    """

    rows: int = 0
    digest: str = ""
    lines_cut: int | None = 0


def embed_lines(
    lines: Iterable[str],
    encoder: Encoder,
    path: Path,
    *,
    dtype: str = "float32",
    total: int | None = None,
    description: str = "embed",
) -> Embedded:
    """Writes `[lines, dim]` to `path`, one row per line, unless the file exists.

    Until it is complete the file is called `path.unfinished`, and `path.json` records how much is
    done. When the job is resumed, finished lines are read again but not embedded. Quantised vectors
    have fewer columns if binary, and a calibration beside the file: see `quantisation`.

    Args:
      lines: the same as before an interruption.
      encoder: the same, too; its `texts_cut`, if any, is the number of texts truncated.
      path: ends in .npy.
      dtype: one of DTYPES.
      total: the number of lines, if known, for the progress bar.
      description: for the progress bar.

    Raises:
      InputError: if the finished rows are of other lines.
    """
    state_file = path.with_name(path.name + _STATE)
    state = Embedded()
    if state_file.is_file():
        state = Embedded(**json.loads(state_file.read_text("utf-8")))
    if path.exists():
        return state
    unfinished = path.with_name(path.name + _UNFINISHED)
    unfinished.touch()
    if _size(unfinished, state.rows) > unfinished.stat().st_size:
        state = Embedded()  # These rows were moved away, or lost.
    lines = iter(lines)
    digest = _skip(lines, state, path)
    with (
        open(unfinished, "r+b") as file,
        Progress(description, total=total, unit="sentence", initial=state.rows) as progress,
    ):
        file.seek(_size(unfinished, state.rows))
        file.truncate()
        calibration = read_calibration(path) if state.rows and dtype in QUANTISED else None
        while chunk := list(itertools.islice(lines, _LINES_PER_CHUNK)):
            cut_before = getattr(encoder, "texts_cut", None)
            vectors = np.asarray(encoder.encode(chunk))
            if dtype in QUANTISED:
                calibration = calibration or _calibrate(vectors, dtype, path)
                rows = calibration.quantise(vectors)
            else:
                rows = vectors.astype(f"<{np.dtype(dtype).str[1:]}")
            _append(file, rows, state.rows)
            state.rows += len(chunk)
            state.digest = _digest(digest, chunk)
            if cut_before is None:
                state.lines_cut = None
            elif state.lines_cut is not None:
                state.lines_cut += encoder.texts_cut - cut_before
            with whole_file(state_file, overwrite=True) as partial:
                partial.write_text(json.dumps(dataclasses.asdict(state)), "utf-8")
            progress.update(len(chunk))
    os.replace(unfinished, path)
    return state


def _skip(lines: Iterable[str], state: Embedded, path: Path):
    """Skips the finished lines and returns their hash.

    Raises:
      InputError: if they differ from those that were embedded.
    """
    digest = hashlib.sha256()
    _digest(digest, itertools.islice(lines, state.rows))
    if state.rows and digest.hexdigest() != state.digest:
        raise InputError(
            f"holds the vectors of {state.rows} other lines, from an interrupted job",
            path=path.parent,
            remedy="use that job's input, remove the folder, or start afresh with --overwrite",
        )
    return digest


def _digest(digest, lines: Iterable[str]) -> str:
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def _append(file: BinaryIO, vectors: np.ndarray, rows: int) -> None:
    """Appends vectors after `rows` existing ones, and updates the row count in the header."""
    # NumPy pads the header so that the count can grow in place.
    end = file.tell()
    file.seek(0)
    header = {
        "descr": vectors.dtype.str,
        "fortran_order": False,
        "shape": (rows + len(vectors), vectors.shape[1]),
    }
    np.lib.format.write_array_header_1_0(file, header)
    if rows:
        file.seek(end)
    file.write(np.ascontiguousarray(vectors).data)
    file.flush()
    os.fsync(file.fileno())


def _size(path: Path, rows: int) -> int:
    """Returns the bytes of the header and the first `rows` rows; without a header, the most."""
    if not rows:
        return 0
    with open(path, "rb") as file:
        try:
            np.lib.format.read_magic(file)
            (_, columns), _, dtype = np.lib.format.read_array_header_1_0(file)
        except ValueError:
            return sys.maxsize
        return file.tell() + rows * columns * dtype.itemsize


def _calibrate(sample: np.ndarray, dtype: str, path: Path) -> Calibration:
    calibration = QUANTISED[dtype].fit(sample)
    write_calibration(path, calibration)
    return calibration
