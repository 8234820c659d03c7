"""An encoder without layers: a sentence is the average of its tokens' vectors.

A token's vector may be a sum of rows of a table: a row of its own and rows of its parts.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf
import tf_keras
from official.nlp.modeling import layers

from labse_tf.config import EncoderConfig
from labse_tf.model.protocol import symbolic_inputs
from vocab.wordpiece import JOINER, spell

# Columns that stay 0 in each row. A layer norm needs them if layers are put on top: see
# `grow_layers` in `model.stacking`.
SPARE_COLUMNS = 2

_TOKENS_AT_A_TIME = 16384
# Maximum length of the tokens that a token is split into, as a share of its characters.
_SPLIT_SHARE = 0.6
# An n-gram that fewer tokens have gets no row: it would repeat the tokens' own rows.
_LEAST_TOKENS = 3
_WORD_START = "^"


class StaticEncoder(tf_keras.layers.Layer):
    """Takes the inputs of the BERT encoder and gives outputs of the same names and shapes.

    With e(t) the row of token t, and n tokens between [CLS] and [SEP]:

        pooled = (e(t_1) + ... + e(t_n)) / n

    [CLS], the last [SEP] and padding do not count. Neither positions nor token types matter. The
    last SPARE_COLUMNS columns of the table begin as 0, and a loss that sees only products of
    embeddings leaves them so: each one's gradient is a sum of other embeddings' same columns.
    """

    def __init__(
        self,
        config: EncoderConfig,
        *,
        embedding_layer: tf_keras.layers.Layer | None = None,
        subwords: Subwords | None = None,
    ) -> None:
        """Makes the layer; its variables exist once it is called.

        With `subwords`, e(t) is a sum of rows of the table; else it is row t. `embedding_layer`
        looks tokens up, instead of a table of float32.
        """
        # There is no product of matrices that bfloat16 would make faster.
        super().__init__(name="encoder", dtype="float32")
        self._parts = subwords and subwords.rows
        self._splitting = None
        if config.split_rate and subwords:
            # Draws which tokens to split; a run replays and resumes it as any dropout.
            self._splitting = tf_keras.layers.Dropout(config.split_rate)
            self._splitting.build(())
            # Token t whole at t, and split at t + tokens.
            self._tokens = self._parts.shape[0]
            self._parts = tf.concat([self._parts, subwords.split_rows()], axis=0)
        self._embedding_layer = embedding_layer or layers.OnDeviceEmbedding(
            vocab_size=subwords.count if subwords else config.vocab_size,
            embedding_width=config.hidden_size,
            initializer=_SpareColumns(config.initializer_range),
            name="word_embeddings",
            dtype="float32",
        )
        self.inputs = symbolic_inputs()
        self.transformer_layers: list = []

    def get_embedding_table(self) -> tf.Variable:
        """Returns the table: float32 `[vocab_size, hidden_size]`, or with subwords more rows."""
        return self._embedding_layer.embeddings

    def rows(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns the rows of the table that `inputs` read: int32 `[batch, length]`.

        With subwords: `[n]`.
        """
        ids = inputs["input_word_ids"]
        if self._parts is None:
            return ids
        distinct = tf.unique(tf.reshape(ids, [-1]))[0]
        if self._splitting is not None:
            distinct = tf.concat([distinct, distinct + self._tokens], axis=0)
        return tf.gather(self._parts, distinct).values

    def call(
        self, inputs: dict[str, tf.Tensor], training: bool | None = None
    ) -> dict[str, tf.Tensor]:
        """Returns `pooled_output`, `[batch, hidden_size]`, and the tokens' vectors.

        The latter are `sequence_output`, `[batch, length, hidden_size]`, and alone in the list
        `encoder_outputs`. In training, each distinct token is looked up only once, which saves most
        of a step's time, but has no static shapes, which a TPU needs.
        """
        ids = inputs["input_word_ids"]
        weights = _average_weights(inputs["input_mask"])
        on_tpu = isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy)
        if self._parts is None and (on_tpu or not training):
            vectors = self._embedding_layer(ids)
            pooled = tf.squeeze(tf.matmul(weights[:, tf.newaxis], vectors), axis=1)
        else:
            distinct, places = tf.unique(tf.reshape(ids, [-1]))
            places = tf.reshape(places, tf.shape(ids))
            rows = self._vectors(distinct, training)
            vectors = tf.gather(rows, places)
            pooled = _average(rows, places, weights)
        return {"pooled_output": pooled, "sequence_output": vectors, "encoder_outputs": [vectors]}

    def _vectors(self, ids: tf.Tensor, training: bool | None) -> tf.Tensor:
        """Returns `[n, hidden_size]`, the vectors of `[n]` distinct tokens."""
        if self._parts is None:
            return self._embedding_layer(ids)
        if training and self._splitting is not None:
            whole = self._splitting(tf.ones(tf.shape(ids)), training=True)
            ids += self._tokens * tf.cast(whole == 0, tf.int32)
        parts = tf.gather(self._parts, ids)
        distinct, places = tf.unique(parts.values)
        rows = self._embedding_layer(distinct)
        # Else TensorFlow's graph optimiser merges look-up and sum (SimplifyEmbeddingLookupStage),
        # and each step copies the whole table.
        rows = tf.ensure_shape(rows, [None, rows.shape[-1]])
        return tf.sparse.segment_sum(rows, places, parts.value_rowids())


def _average(rows: tf.Tensor, places: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Returns `[batch, width]`: the averages of rows of `[n, width]`, at `[batch, length]`."""
    read = tf.where(weights > 0)
    sums = tf.sparse.segment_sum(
        rows, tf.gather_nd(places, read), read[:, 0], num_segments=tf.shape(places)[0]
    )
    return sums * tf.reduce_max(weights, axis=1, keepdims=True)


def _average_weights(mask: tf.Tensor) -> tf.Tensor:
    """Returns float32 `[batch, length]`: 1 / n at the n tokens between first and last, else 0.

    If there are none, the others count: the vector of a text without tokens is not zero. `mask`,
    `[batch, length]`, is 1 at tokens, from the first position on, and 0 at padding.
    """
    # [CLS] is the first token, and after the last one, [SEP], comes none.
    followed = tf.pad(mask[:, 1:], [[0, 0], [0, 1]])
    inner = mask * followed * tf.cast(tf.range(tf.shape(mask)[1]) > 0, mask.dtype)
    has_inner = tf.reduce_max(inner, axis=1, keepdims=True) > 0
    counted = tf.cast(tf.where(has_inner, inner, mask), tf.float32)
    return counted / tf.reduce_sum(counted, axis=1, keepdims=True)


class _SpareColumns(tf_keras.initializers.Initializer):
    """Random numbers, and zeros in the last columns."""

    def __init__(self, initializer_range: float) -> None:
        self._random = tf_keras.initializers.TruncatedNormal(stddev=initializer_range)

    def __call__(self, shape, dtype=None, **kwargs) -> tf.Tensor:
        rows, width = shape
        random = self._random((rows, width - SPARE_COLUMNS), dtype)
        return tf.pad(random, [[0, 0], [0, SPARE_COLUMNS]])


class Subwords:
    """The rows of a table whose sum is each token's vector.

    The parts of a rare token have learned its meaning from the many tokens that share them (as the
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
        """Spells all tokens of a vocabulary; parts that it lacks are left out.

        `lengths` count characters without the `##` of a part inside a word, `ngrams` with `^`.
        """
        self._tokens = tokens
        self.count = len(tokens)
        rows = [[row] for row in range(len(tokens))]
        for length in lengths:
            short = [token for token in tokens if len(token.removeprefix(JOINER)) <= length]
            ids = {token: self.count + place for place, token in enumerate(short)}
            for token, parts in zip(tokens, rows, strict=True):
                if not _is_special(token):
                    parts += spell(token, ids) or []
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
