"""Gold pairs: lines of two files that are known to be translations."""

from __future__ import annotations

import os

import numpy as np

from labse_tf.errors import InputError
from labse_tf.files.textio import read_lines, split_pair
from labse_tf.retrieval.mining import Pairs
from labse_tf.retrieval.sentences import NOWHERE, Sentences
from labse_tf.retrieval.threshold import Threshold, at_threshold, best_threshold


def read_gold(
    path: str | os.PathLike[str], sources: Sentences, targets: Sentences
) -> set[tuple[int, int]]:
    """Reads a TSV file of line numbers of source and target, both counted from 1.

    Returns:
      Indices of the distinct sentences in these lines.

    Raises:
      InputError: as `textio.read_lines` and `split_pair`, or if a column is not a number, or the
        line does not exist or is empty.
    """
    pairs = set()
    for number, line in read_lines(path):
        columns = split_pair(line, os.fspath(path), number)
        pairs.add(
            tuple(
                _place(column, side, name, path, number)
                for column, side, name in zip(
                    columns, (sources, targets), ("source", "target"), strict=True
                )
            )
        )
    return pairs


def _place(
    column: str, side: Sentences, name: str, path: str | os.PathLike[str], number: int
) -> int:
    if not (column.isascii() and column.isdigit()):
        raise InputError(
            f"the {name} column is '{column[:40]}', not the number of a line",
            path=path,
            line=number,
            remedy="give the lines of source and target, counted from 1, with a tab between",
        )
    line = int(column)
    remedy = f"check the {name} column against that file"
    if not 1 <= line <= len(side.places):
        raise InputError(
            f"there is no line {line} in {side.path}, which has {len(side.places)}",
            path=path,
            line=number,
            remedy=remedy,
        )
    place = int(side.places[line - 1])
    if place == NOWHERE:
        raise InputError(
            f"line {line} of {side.path} is empty", path=path, line=number, remedy=remedy
        )
    return place


def measure(pairs: Pairs, gold: set[tuple[int, int]], threshold: float | None) -> Threshold:
    """Returns the quality of pairs at a threshold, or at the one with the best F1 if it is None."""
    mined = zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True)
    is_gold = np.fromiter((pair in gold for pair in mined), bool, len(pairs))
    if threshold is None:
        return best_threshold(pairs.scores, is_gold, len(gold))
    return at_threshold(pairs.scores, is_gold, len(gold), threshold)
