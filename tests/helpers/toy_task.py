"""A task in one file: is a sentence nearer to its copy in capitals than the others are?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from labse_tf.evaluation.record import make_record
from labse_tf.evaluation.task import Option
from labse_tf.files.textio import read_lines

DATA = "sentences.txt, a sentence per line"
OPTIONS = (Option("sentences", "the first so many (default: all)", type=int, metavar="N"),)
PRIMARY_METRIC = "found"


def evaluate(encoder, data, *, sentences=None):
    path = Path(data, "sentences.txt")
    texts = [text for _, text in read_lines(path)][:sentences]
    near = encoder.encode(texts) @ encoder.encode([text.upper() for text in texts]).T
    found = float(np.mean(near.argmax(axis=1) == np.arange(len(texts))))
    return make_record(
        "capitals",
        encoder,
        data,
        [path],
        primary_metric=PRIMARY_METRIC,
        directions=["sentence -> capitals"],
        settings={"sentences": len(texts)},
        scores={"found": found},
    )


def format_table(result):
    return f"found {result['found']:.3f}"


class Capitals:
    """An object can be a task as well as a module."""

    DATA, OPTIONS, PRIMARY_METRIC = DATA, OPTIONS, PRIMARY_METRIC
    evaluate, format_table = staticmethod(evaluate), staticmethod(format_table)
