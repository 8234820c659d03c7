"""A table's rows for another vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from vocab.spelling import spell

_UNKNOWN = "[UNK]"


def grow_vocabulary(
    table: np.ndarray, tokens: Sequence[str], new_tokens: Sequence[str], *, mean: bool
) -> np.ndarray:
    """Returns the rows of `new_tokens`: each is made of the rows of the tokens that spell it.

    In an encoder without layers a sentence is the direction of the sum of its rows. So a row is the
    sum of those that spell it: a sentence has the same vector as before, and a word that became one
    piece begins with what its parts have learned. Layers expect rows of one length: theirs is the
    mean (Gee et al. 2022, "Fast Vocabulary Transfer for Language Model Compression", section 3).

    Args:
      table: `[tokens, width]`.
      tokens: its vocabulary.
      new_tokens: the new vocabulary.
      mean: take the mean, not the sum.

    Returns:
      float32 `[new tokens, width]`; a token that cannot be spelled has the row of [UNK].
    """
    ids = {token: number for number, token in enumerate(tokens)}
    rows = np.empty((len(new_tokens), table.shape[1]), np.float32)
    for row, token in zip(rows, new_tokens, strict=True):
        spelled = [ids[token]] if token in ids else spell(token, ids) or [ids[_UNKNOWN]]
        row[:] = table[spelled].mean(axis=0) if mean else table[spelled].sum(axis=0)
    return rows


def copy_grown(source: tf.Module, target: tf.Module, table: np.ndarray) -> None:
    """Gives a module the weights of another one with fewer tokens, whose ids are the same.

    Args:
      source: an encoder, or an MLM head.
      target: the same with more tokens.
      table: what becomes the embedding table of `target`. A bias of new tokens becomes 0.
    """
    for theirs, ours in zip(source.variables, target.variables, strict=True):
        value = theirs.numpy()
        if value.shape == ours.shape:
            ours.assign(value)
        elif ours.shape == table.shape:
            ours.assign(table)
        else:
            ours.assign(np.pad(value, (0, ours.shape[0] - len(value))))
