"""Embeds lines of text into a file of vectors, chunk by chunk; resumes after an interruption."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import logging
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.embedding.quantisation import (
    QUANTISED,
    calibration_path,
    read_calibration,
    write_calibration,
)
from labse_tf.errors import InputError
from labse_tf.files import outputs
from labse_tf.files.textio import lines_of_stream, read_lines
from labse_tf.progress import Progress

STDIN = "-"
# A killed job loses at most this many lines. Quantised vectors are calibrated on the first chunk.
_LINES_PER_CHUNK = 8192
_MANY = 0.1  # A share of the lines.

_log = logging.getLogger("labse")


@dataclasses.dataclass
class Embedded:
    """The finished part of a job.

    Attributes:
      rows: number of rows written, one per line.
      digest: hash of these lines, to recognise them on resuming.
      lines_cut: number of lines truncated by the encoder; None if it does not count them.
      size: bytes of the file with these rows.
    """

    rows: int = 0
    digest: str = ""
    lines_cut: int | None = 0
    size: int = 0


def embed_file(
    model: str,
    source: str,
    out: str | os.PathLike[str],
    *,
    open_encoder: Callable[..., Any],
    dtype: str = "float32",
    dim: int | None = None,
    language: str | None = None,
    normalize: str | None = None,
    overwrite: bool = False,
) -> Embedded:
    """Writes the vectors of the lines of a file, in order: `labse embed`.

    Finished work is kept in `OUT.work`, so that an interrupted job can resume.

    Args:
      model: as for `open_encoder`, like `dim` and `language`.
      source: a file, or STDIN.
      out: a .npy file, `[lines, dim]`.
      open_encoder: opens the model: `labse_tf.embedding.open.open_encoder`.
      dtype: float32 or float16; int8 or binary, with a calibration next to the file, see
        `labse_tf.embedding.quantisation`.
      dim: the number of leading columns to keep; None: all.
      language: of all lines.
      normalize: a form of Unicode, such as "NFC", that lines are brought to; None: as they are.
      overwrite: replace `out`, and discard the work of another job.

    Raises:
      InputError: if the model, a line or the output is invalid, or the disk is full.
    """
    out = outputs.check_free_file(out, overwrite=overwrite)
    if out.suffix != ".npy":
        raise InputError("is not named .npy", path=out, remedy="name a .npy file")
    numbered = lines_of_stream(sys.stdin.buffer, "stdin") if source == STDIN else read_lines(source)
    # Errors in the file are reported before the model is loaded.
    first = next(numbered)
    lines = (line for _, line in itertools.chain([first], numbered))
    if normalize:
        lines = (unicodedata.normalize(normalize, line) for line in lines)
    else:
        lines = _warning_of_marks(lines)
    encoder = open_encoder(model, dim=dim, language=language)
    settings = {
        "model": [encoder.name, encoder.facts().get("model_sha256")],
        "input": STDIN if source == STDIN else outputs.describe_files(Path(source)),
        "dtype": dtype,
        "dim": dim,
        "language": language,
        "normalize": normalize,
    }
    with (
        outputs.report_full_disk(out, remedy="run the same command again to resume"),
        outputs.work_folder(out, settings, overwrite=overwrite) as folder,
    ):
        vectors = folder / "vectors.npy"
        done = embed_lines(lines, encoder, vectors, dtype=dtype)
        _move(vectors, outputs.check_free_file(out, overwrite=overwrite), dtype)
    _log.info("%d lines, vectors of %d dimensions", done.rows, encoder.dim)
    if zeros := encoder.facts()["zero_vectors"]:
        _log.info("%d lines have a zero vector: the encoder could not embed them", zeros)
    if done.lines_cut:
        remedy = "split them, or export it with a greater --length, if it was trained for that"
        cut, length = done.lines_cut, encoder.sequence_length
        _log.info("%d lines were truncated to %d tokens: %s", cut, length, remedy)
    return done


def _warning_of_marks(lines: Iterable[str]) -> Iterator[str]:
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
    done. When the job is resumed, finished lines are read again but not embedded.

    Args:
      lines: the same as before an interruption.
      encoder: the same, too; its `texts_cut`, if any, is the number of texts truncated.
      path: ends in .npy.
      dtype: as for `embed_file`; quantised vectors have their calibration next to the file.
      total: the number of lines, if known, for the progress bar.
      description: for the progress bar.

    Raises:
      InputError: if the finished rows are of other lines.
    """
    record, unfinished = (path.with_name(f"{path.name}.{end}") for end in ("json", "unfinished"))
    state = Embedded(**json.loads(record.read_text("utf-8"))) if record.is_file() else Embedded()
    if path.exists():
        return state
    unfinished.touch()
    if not 0 < state.size <= unfinished.stat().st_size:
        state = Embedded()  # These rows were moved away, or lost.
    lines, digest = iter(lines), hashlib.sha256()
    _digest(digest, itertools.islice(lines, state.rows))
    if state.rows and digest.hexdigest() != state.digest:
        problem = f"holds the vectors of {state.rows} other lines, from an interrupted job"
        remedy = "use that job's input, remove the folder, or start afresh with --overwrite"
        raise InputError(problem, path=path.parent, remedy=remedy)
    calibration = read_calibration(path) if state.rows and dtype in QUANTISED else None
    with (
        open(unfinished, "r+b") as file,
        Progress(description, total=total, unit="sentence", initial=state.rows) as progress,
    ):
        file.truncate(state.size)
        while chunk := list(itertools.islice(lines, _LINES_PER_CHUNK)):
            cut_before = getattr(encoder, "texts_cut", None)
            vectors = np.asarray(encoder.encode(chunk))
            if dtype in QUANTISED:
                if calibration is None:
                    calibration = QUANTISED[dtype].fit(vectors)
                    write_calibration(path, calibration)
                rows = calibration.quantise(vectors)
            else:
                rows = vectors.astype(f"<{np.dtype(dtype).str[1:]}")
            state.rows += len(chunk)
            file.seek(0)
            shape = (state.rows, rows.shape[1])
            header = {"descr": rows.dtype.str, "fortran_order": False, "shape": shape}
            # NumPy pads the header so that the number of rows can grow in place.
            np.lib.format.write_array_header_1_0(file, header)
            file.seek(max(file.tell(), state.size))
            file.write(np.ascontiguousarray(rows).data)
            file.flush()
            os.fsync(file.fileno())
            state.size, state.digest = file.tell(), _digest(digest, chunk)
            if cut_before is None:
                state.lines_cut = None
            elif state.lines_cut is not None:
                state.lines_cut += encoder.texts_cut - cut_before
            with outputs.whole_file(record, overwrite=True) as partial:
                partial.write_text(json.dumps(vars(state)), "utf-8")
            progress.update(len(chunk))
    os.replace(unfinished, path)
    return state


def _digest(digest, lines: Iterable[str]) -> str:
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()
