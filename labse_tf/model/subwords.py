"""Tokens' vectors as sums of a table's rows: a row of their own and rows of their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from labse_tf.model.spelling import JOINER, spell

_TOKENS_AT_A_TIME = 16384
# Of a token's characters, how many the tokens that it is split into may have.
_SPLIT_SHARE = 0.6


class Subwords:
    """Which rows each token's vector is the sum of.

    What a rare token means, its parts have learned from the many tokens that share them (as the
    character n-grams of Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information";
    here parts are tokens of the vocabulary). With E the table and t|n the spelling of token t by
    tokens of at most n characters, for lengths n_1, n_2, ...:

        vector(t) = E(t) + sum of E_1(q) for q in t|n_1 + sum of E_2(q) for q in t|n_2 + ...

    The rows of E come first, then those of E_1 and so on, which have one row for each token of at
    most that many characters.

    Attributes:
      rows: ragged int32 `[tokens, (parts)]`, the rows of each token's sum; its own is the first.
      count: the number of rows.
    """

    def __init__(self, tokens: Sequence[str], lengths: Sequence[int]) -> None:
        """Spells all tokens.

        Args:
          tokens: the vocabulary. A part that it lacks is left out, and a special token has none.
          lengths: characters, without the `##` of a part inside a word.
        """
        self._tokens = tokens
        self.count = len(tokens)
        rows = [[row] for row in range(len(tokens))]
        for length in lengths:
            short = [token for token in tokens if len(token.removeprefix(JOINER)) <= length]
            ids = {token: self.count + place for place, token in enumerate(short)}
            for token, parts in zip(tokens, rows, strict=True):
                parts += _parts(token, ids)
            self.count += len(short)
        self.rows = tf.ragged.constant(rows, tf.int32, row_splits_dtype=tf.int64)

    def split_rows(self) -> tf.RaggedTensor:
        """Returns the rows of each token's spelling by shorter tokens: int32 `[tokens, (parts)]`.

        These have at most 60 % of its characters. A token that they cannot spell has its own rows.
        """
        ids = {token: row for row, token in enumerate(self._tokens) if not _is_special(token)}
        rows = self.rows.to_list()
        split = [_split(token, ids) or [row] for row, token in enumerate(self._tokens)]
        split = [[part for token in tokens for part in rows[token]] for tokens in split]
        return tf.ragged.constant(split, tf.int32, row_splits_dtype=tf.int64)

    def fold(self, table: np.ndarray) -> np.ndarray:
        """Returns the tokens' vectors, float32 `[tokens, width]`, of a table `[count, width]`."""
        values, splits = self.rows.values.numpy(), self.rows.row_splits.numpy()
        folded = np.empty((self.rows.shape[0], table.shape[1]), np.float32)
        for start in range(0, len(folded), _TOKENS_AT_A_TIME):
            ends = splits[start : start + _TOKENS_AT_A_TIME + 1]
            parts = table[values[ends[0] : ends[-1]]]
            folded[start : start + len(ends) - 1] = np.add.reduceat(parts, ends[:-1] - ends[0])
        return folded

    def unfold(self, vectors: np.ndarray) -> np.ndarray:
        """Returns a table, `[count, width]`, that `fold` maps to `vectors`: its parts are 0."""
        return np.pad(vectors, [(0, self.count - len(vectors)), (0, 0)])


def _parts(token: str, ids: Mapping[str, int]) -> list[int]:
    return [] if _is_special(token) else spell(token, ids) or []


def _split(token: str, ids: Mapping[str, int]) -> list[int] | None:
    most = round(_SPLIT_SHARE * len(token.removeprefix(JOINER)))
    return None if _is_special(token) or not most else spell(token, ids, most_characters=most)


def _is_special(token: str) -> bool:
    return token.startswith("[") and token.endswith("]")
