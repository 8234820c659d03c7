"""`labse embed`: embeds a file of sentences into a file of vectors."""

from __future__ import annotations

import itertools
import logging
import os
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from labse_tf.embedding.lines import DTYPES, Embedded, embed_lines
from labse_tf.embedding.open import OpenedEncoder, open_encoder
from labse_tf.embedding.quantisation import QUANTISED, calibration_path
from labse_tf.errors import InputError
from labse_tf.files.outputs import (
    check_free_file,
    describe_files,
    full_disk_said,
    whole_file,
    work_folder,
)
from labse_tf.files.textio import lines_of_stream, read_lines
from labse_tf.progress import Progress

STDIN = "-"
_SUFFIXES = (".npy", ".parquet")
_ROWS_PER_GROUP = 16384
_MANY = 0.1  # A share of the lines.

_log = logging.getLogger("labse")


def embed_file(
    model: str,
    source: str,
    out: str | os.PathLike[str],
    *,
    dtype: str = "float32",
    dim: int | None = None,
    language: str | None = None,
    normalize: str | None = None,
    overwrite: bool = False,
) -> Embedded:
    """Writes the vectors of the lines of a file, in order.

    Finished work is kept in `OUT.work`, so that an interrupted job can resume.

    Args:
      model: a name that `open_encoder` accepts.
      source: a file, or STDIN.
      out: a .npy file, `[lines, dim]`; or .parquet with the columns `line` and `vector`.
      dtype: float32 or float16; int8 or binary in a .npy file, with its calibration beside it, see
        `labse_tf.embedding.quantisation`.
      dim: the number of leading columns to keep, as for `open_encoder`; None: all.
      language: of all lines, as for `labse_tf.load`.
      normalize: a form of Unicode, such as "NFC", that lines are brought to; None: as they are.
      overwrite: replace `out`, and discard the work of another job.

    Raises:
      InputError: if the model, a line or the output is invalid, the type is unknown or cannot be
        written to `out`, or the disk is full.
    """
    out = check_free_file(out, overwrite=overwrite)
    if out.suffix not in _SUFFIXES:
        raise InputError("has an unknown suffix", path=out, remedy=f"use {' or '.join(_SUFFIXES)}")
    if dtype not in DTYPES:
        raise InputError(f"--dtype is {dtype}", remedy=f"give one of {', '.join(DTYPES)}")
    if dtype in QUANTISED and out.suffix != ".npy":
        raise InputError(
            f"cannot hold {dtype} vectors", path=out, remedy="name a .npy file, or use float16"
        )
    lines = _lines(source)
    # Errors in the file are reported before the model is loaded.
    first = next(lines)
    lines = itertools.chain([first], lines)
    if normalize:
        lines = (unicodedata.normalize(normalize, line) for line in lines)
    else:
        lines = _warning_of_marks(lines)
    encoder = open_encoder(model, dim=dim, language=language)
    settings = {
        "model": [encoder.name, encoder.facts().get("model_sha256")],
        "input": STDIN if source == STDIN else describe_files(Path(source)),
        "dtype": dtype,
        "dim": dim,
        **({"language": language} if language else {}),
        **({"normalize": normalize} if normalize else {}),
    }
    with (
        full_disk_said(out, remedy="run the same command again to resume"),
        work_folder(out, settings, overwrite=overwrite) as folder,
    ):
        vectors = folder / "vectors.npy"
        done = embed_lines(lines, encoder, vectors, dtype=dtype)
        if out.suffix == ".npy":
            _move(vectors, check_free_file(out, overwrite=overwrite), dtype)
        else:
            with whole_file(out, overwrite=overwrite) as partial:
                _write_parquet(vectors, partial)
    _tell(done, encoder)
    return done


def _lines(source: str) -> Iterator[str]:
    numbered = lines_of_stream(sys.stdin.buffer, "stdin") if source == STDIN else read_lines(source)
    return (line for _, line in numbered)


def _warning_of_marks(lines: Iterator[str]) -> Iterator[str]:
    """Yields the lines; logs one line if many are not in the form NFC."""
    count = other = 0
    for line in lines:
        count += 1
        other += not unicodedata.is_normalized("NFC", line)
        yield line
    if other > _MANY * count:
        _log.warning("%d of %d lines are not in NFC: see --normalize NFC", other, count)


def _move(vectors: Path, out: Path, dtype: str) -> None:
    """Moves vectors into place, after their calibration; may be interrupted and called again."""
    made, calibration = calibration_path(vectors), calibration_path(out)
    if made.exists() or calibration.exists():
        # Vectors of an earlier job must not be read with the calibration of this one.
        out.unlink(missing_ok=True)
    if made.exists():
        os.replace(made, calibration)
    elif dtype not in QUANTISED:
        calibration.unlink(missing_ok=True)
    os.replace(vectors, out)


def _write_parquet(vectors: Path, out: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = np.load(vectors, mmap_mode="r", allow_pickle=False)
    row_type = pa.list_(pa.from_numpy_dtype(rows.dtype), rows.shape[1])
    schema = pa.schema([("line", pa.int64()), ("vector", row_type)])
    with (
        parquet.ParquetWriter(out, schema) as writer,
        Progress("write", total=len(rows), unit="row") as progress,
    ):
        for start in range(0, len(rows), _ROWS_PER_GROUP):
            group = rows[start : start + _ROWS_PER_GROUP]
            lines = np.arange(start + 1, start + len(group) + 1)
            arrays = [lines, pa.FixedSizeListArray.from_arrays(group.ravel(), type=row_type)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            progress.update(len(group))


def _tell(done: Embedded, encoder: OpenedEncoder) -> None:
    _log.info("%d lines, vectors of %d dimensions", done.rows, encoder.dim)
    if zeros := encoder.facts()["zero_vectors"]:
        _log.info("%d lines have a zero vector: the encoder could not embed them", zeros)
    if done.lines_cut:
        _log.info(
            "%d lines were truncated to %d tokens: split them, or export the model with a greater "
            "--length, if it was trained for that",
            done.lines_cut,
            encoder.sequence_length,
        )
