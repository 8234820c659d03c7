"""`labse score`: computes the similarity of the two sides of given pairs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from labse_tf.embedding.protocol import Encoder
from labse_tf.errors import InputError
from labse_tf.files import outputs, textio
from labse_tf.progress import Progress
from labse_tf.retrieval.job import GO_ON, Options, search_sides
from labse_tf.retrieval.mining import margin_scores
from labse_tf.retrieval.sentences import check_text, distinct

STANDARD = "-"
_PAIRS_PER_CHUNK = 8192

# A line as read, and its two sides.
PairLine = tuple[str, str, str]


def score(
    pairs: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    model: str,
    open_encoder: Callable[..., Encoder],
    options: Options,
    overwrite: bool = False,
) -> tuple[int, int]:
    """Writes the lines of a TSV file of pairs with the score added as the first column.

    The score is the cosine if the margin is `absolute`: then a few thousand pairs are in memory at
    a time. For another margin, the neighbours of a sentence are searched for in the whole other
    column; finished work is kept in `OUT.work`, so that an interrupted job can resume.

    `pairs` and `out` may be - for stdin and stdout; other arguments are as of `job.mine`. Returns
    the numbers of pairs read and written.

    Raises:
      InputError: as `textio.read_pairs`, or if a line has a NUL byte, `out` exists, the disk is
        full, or a path is - for a margin.
    """
    if str(out) != STANDARD:
        out = outputs.check_free_file(out, overwrite=overwrite)
    if str(pairs) != STANDARD:
        textio.check_file(pairs)
    if options.margin == "absolute":
        encoder = open_encoder(model, dim=options.dim)
        with _output(out, overwrite=overwrite, remedy="run it again") as file:
            return _write(file, pairs, lambda rows: _cosines(rows, encoder), options.threshold)
    if STANDARD in (str(pairs), str(out)):
        problem = "a margin compares each pair with all the others: the file is read twice"
        raise InputError(problem, remedy="name files for the pairs and for --out")
    sides = [distinct((row[column] for row in _read(pairs)), str(pairs)) for column in (1, 2)]
    job = {"model": model, "open_encoder": open_encoder, "options": options}
    inputs = {"pairs": outputs.describe_files(Path(pairs))}
    with (
        search_sides(sides, out, inputs, **job, overwrite=overwrite) as found,
        _output(out, overwrite=overwrite, remedy=GO_ON) as file,
    ):
        means = [each.similarities.mean(axis=1) for each in (found.forward, found.backward)]
        # The places of each line's texts on both sides.
        places = zip(*(side.places.tolist() for side in sides), strict=True)

        def margins(rows: list[PairLine]) -> np.ndarray:
            here = [np.array(some) for some in zip(*islice(places, len(rows)), strict=True)]
            vectors = (side[some] for side, some in zip(found.vectors, here, strict=True))
            near = (mean[some] for mean, some in zip(means, here, strict=True))
            return margin_scores(np.einsum("nd,nd->n", *vectors), *near, margin=options.margin)

        return _write(file, pairs, margins, options.threshold)


def _cosines(rows: list[PairLine], encoder: Encoder) -> np.ndarray:
    """Returns the cosines `[rows]`; repeated sentences are embedded once."""
    texts = dict.fromkeys(text for row in rows for text in row[1:])
    places = {text: place for place, text in enumerate(texts)}
    vectors = encoder.encode(list(texts))
    sides = (vectors[[places[row[column]] for row in rows]] for column in (1, 2))
    return np.einsum("nd,nd->n", *sides)


def _read(pairs: str | os.PathLike[str]) -> Iterator[PairLine]:
    name = "stdin" if str(pairs) == STANDARD else str(pairs)
    is_stdin = name == "stdin"
    lines = textio.lines_of_stream(sys.stdin.buffer, name) if is_stdin else textio.read_lines(pairs)
    first, lines = textio.with_columns(lines, name)
    for number, line in lines:
        check_text(line, name, number)
        yield (line, *textio.split_pair(line, name, number, first=first))


def _write(
    file: TextIO,
    pairs: str | os.PathLike[str],
    scores: Callable[[list[PairLine]], np.ndarray],
    threshold: float | None,
) -> tuple[int, int]:
    """Writes the pairs that reach the threshold; returns the numbers of pairs read and written."""
    rows, read, written = _read(pairs), 0, 0
    threshold = -np.inf if threshold is None else threshold
    with Progress("score", unit="pair") as progress:
        while chunk := list(islice(rows, _PAIRS_PER_CHUNK)):
            for (line, _, _), score in zip(chunk, scores(chunk).tolist(), strict=True):
                if score >= threshold:
                    file.write(f"{score:.6f}\t{line}\n")
                    written += 1
            read += len(chunk)
            progress.update(len(chunk))
    return read, written


@contextlib.contextmanager
def _output(out: str | os.PathLike[str], *, overwrite: bool, remedy: str) -> Iterator[TextIO]:
    if str(out) == STANDARD:
        # The same as for files, whatever the locale.
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
        yield sys.stdout
        return
    with (
        outputs.report_full_disk(out, remedy=remedy),
        outputs.whole_file(out, overwrite=overwrite) as partial,
        textio.open_to_write(partial, name=out) as file,
    ):
        yield file
