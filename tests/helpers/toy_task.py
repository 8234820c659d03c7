"""A task in one file: is a sentence nearer to its copy in capitals than the others are?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from labse_tf.evaluation.bitext import all_cosines, found
from labse_tf.evaluation.task import Option, make_record
from labse_tf.files.textio import read_lines

DATA = "sentences.txt, a sentence per line"
OPTIONS = (Option("sentences", "the first so many (default: all)", type=int, metavar="N", least=1),)
PRIMARY_METRIC = "found"


def evaluate(encoder, data, *, sentences=None):
    path = Path(data, "sentences.txt")
    texts = [text for _, text in read_lines(path)][:sentences]
    cosines = all_cosines(encoder.encode(texts), encoder.encode([text.upper() for text in texts]))
    scores = {"found": float(np.mean(found(cosines)))}
    settings = {"sentences": len(texts)}
    return make_record("capitals", encoder, data, [path], settings, scores)


class Capitals:
    """An object can be a task as well as a module."""

    DATA, OPTIONS, PRIMARY_METRIC = DATA, OPTIONS, PRIMARY_METRIC
    evaluate = staticmethod(evaluate)
