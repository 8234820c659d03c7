"""A table's rows for another vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labse_tf.model.spelling import spell

_UNKNOWN = "[UNK]"


def grow_vocabulary(
    table: np.ndarray, tokens: Sequence[str], new_tokens: Sequence[str]
) -> np.ndarray:
    """Returns the rows of `new_tokens`: each is the sum of the rows of the tokens that spell it.

    In an encoder without layers a sentence is the direction of the sum of its rows. So with pieces
    that spell each other it has the same vector as before, and a word that became one piece begins
    with what its parts have learned.

    Args:
      table: `[tokens, width]`, of a `StaticEncoder`.
      tokens: its vocabulary.
      new_tokens: the new vocabulary.

    Returns:
      float32 `[new tokens, width]`; a token that cannot be spelled has the row of [UNK].
    """
    ids = {token: number for number, token in enumerate(tokens)}
    rows = np.empty((len(new_tokens), table.shape[1]), np.float32)
    for row, token in zip(rows, new_tokens, strict=True):
        spelled = [ids[token]] if token in ids else spell(token, ids) or [ids[_UNKNOWN]]
        row[:] = table[spelled].sum(axis=0)
    return rows
