"""`labse` with another way to begin the rows of new tokens: `python -m ... WAY ARGUMENTS`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from labse_tf.cli.main import main
from labse_tf.model.stacking import grow_vocabulary
from labse_tf.training.runs import initial_weights


def _random(table: np.ndarray, tokens: Sequence[str], new: Sequence[str], *, mean: bool):
    """As rows of a new BERT: normally distributed, here with the table's own deviation."""
    rows = grow_vocabulary(table, tokens, new, mean=mean)
    shape = (len(new) - len(tokens), table.shape[1])
    rows[len(tokens) :] = np.random.default_rng(0).normal(0, table.std(), shape)
    return rows


def _sum(table: np.ndarray, tokens: Sequence[str], new: Sequence[str], *, mean: bool):
    return grow_vocabulary(table, tokens, new, mean=False)


ALTERNATIVES = {"mean": grow_vocabulary, "sum": _sum, "random": _random}

if __name__ == "__main__":
    initial_weights.grow_vocabulary = ALTERNATIVES[sys.argv[1]]
    sys.exit(main(sys.argv[2:]))
