"""Tokens' vectors as sums of a table's rows: a row of their own and rows of their parts."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from vocab.wordpiece import JOINER, spell

_TOKENS_AT_A_TIME = 16384
# Maximum length of the tokens that a token is split into, as a share of its characters.
_SPLIT_SHARE = 0.6
# An n-gram of fewer tokens than these has no row: it would say what the tokens' own rows say.
_LEAST_TOKENS = 3
_WORD_START = "^"


class Subwords:
    """Which rows each token's vector is the sum of.

    What a rare token means, its parts have learned from the many tokens that share them (as the
    character n-grams of Bojanowski et al. 2017, "Enriching Word Vectors with Subword Information";
    here parts are tokens of the vocabulary). With E the table and t|n the spelling of token t by
    tokens of at most n characters, for lengths n_1, n_2, ...:

        vector(t) = E(t) + sum of E_1(q) for q in t|n_1 + sum of E_2(q) for q in t|n_2 + ...
                    + sum of G(g) for g in the n-grams of t

    The rows of E come first, then E_1 and so on, which have one row for each token of at most that
    many characters. Last comes G, with a row for each n-gram that at least 3 tokens have.
    The n-grams of a token are made of its casefolded characters, `^` before them if it begins a
    word; they overlap, as in fastText, while t|n does not.

    Attributes:
      rows: ragged int32 `[tokens, (parts)]`, the rows of each token's sum; its own is the first.
      count: the number of rows.
    """

    def __init__(
        self, tokens: Sequence[str], lengths: Sequence[int], ngrams: Sequence[int] = ()
    ) -> None:
        """Spells all tokens.

        Args:
          tokens: the vocabulary. A part that it lacks is left out, and a special token has none.
          lengths: characters, without the `##` of a part inside a word.
          ngrams: characters of the n-grams, `^` included.
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
        self._add_ngrams(rows, ngrams)
        self.rows = tf.ragged.constant(rows, tf.int32, row_splits_dtype=tf.int64)

    def _add_ngrams(self, rows: list[list[int]], lengths: Sequence[int]) -> None:
        found = [_ngrams(token, lengths) for token in self._tokens]
        tokens_with = collections.Counter(itertools.chain.from_iterable(found))
        shared = [ngram for ngram, tokens in tokens_with.items() if tokens >= _LEAST_TOKENS]
        ids = {ngram: self.count + place for place, ngram in enumerate(shared)}
        for parts, ngrams in zip(rows, found, strict=True):
            parts += [ids[ngram] for ngram in ngrams if ngram in ids]
        self.count += len(shared)

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


def _ngrams(token: str, lengths: Sequence[int]) -> list[str]:
    """Returns a token's distinct n-grams, not itself, in a fixed order."""
    if _is_special(token):
        return []
    inside = token.startswith(JOINER)
    text = token.removeprefix(JOINER) if inside else _WORD_START + token
    text = text.casefold()
    ngrams = (
        text[start : start + n]
        for n in lengths
        if n < len(text)
        for start in range(len(text) - n + 1)
    )
    return list(dict.fromkeys(ngrams))


def _split(token: str, ids: Mapping[str, int]) -> list[int] | None:
    most = round(_SPLIT_SHARE * len(token.removeprefix(JOINER)))
    return None if _is_special(token) or not most else spell(token, ids, most_characters=most)


def _is_special(token: str) -> bool:
    return token.startswith("[") and token.endswith("]")
